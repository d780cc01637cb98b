// The tour: five steps, each with a scene, two or three sentences, and one thing to do.
import { dimension } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";

/** What a step looks at to see whether its action was done. */
export interface Glance {
  spec: Spec;
  time: number;
  clusters: number;
  edited: boolean;
}

export interface TourStep {
  title: string;
  text: string;
  action: string;
  preset: string;
  praise: string; // when it was done
  done(now: Glance, begin: Glance): boolean;
}

export const TOUR: TourStep[] = [
  {
    title: "What a token is",
    text: "Every dot is a token: what a transformer holds for one word, a direction, so a point on a sphere. Layer by layer it moves towards the tokens it listens to, and it listens most to those that already point its way.",
    action: "Press play (or the space bar) and watch them gather.",
    preset: "sphere",
    praise: "They flock: nobody told them where.",
    done: (now, begin) => now.time > begin.time + 0.9,
  },
  {
    title: "β is a temperature",
    text: "β says how choosy attention is. At β = 1, as here, everybody hears everybody and all end in one place. When β is large, tokens hear only their neighbours, and many groups form.",
    action: "Move β to 20 or more, then play.",
    preset: "warm",
    praise: "Colder attention, more clusters.",
    done: (now) => (now.spec.model.beta ?? 0) >= 20 && now.time > 0.5,
  },
  {
    title: "Metastability",
    text: "Two groups collapse at once, and then nothing seems to happen. But they do pull on each other, so weakly that the wait grows exponentially with β; in the end they run together within a moment. The staircase of energy shows it.",
    action: "Play until the two groups have become one (raise the speed if you are in a hurry).",
    preset: "metastability",
    praise: "That long wait, and then the jump: metastability.",
    done: (now) => now.clusters === 1 && now.time > 0,
  },
  {
    title: "Causal leaders",
    text: "In a language model a token hears only what came before it. So the first token hears nobody else and never moves: it leads. Others that are far from all earlier ones become leaders too, and the rest gather around them.",
    action: "While it plays, drag any token somewhere else and let it go.",
    preset: "causal",
    praise: "Followers go with whom they hear; earlier tokens did not even notice.",
    done: (now, begin) => now.edited && sameModel(now.spec, begin.spec),
  },
  {
    title: "What the perceptron changes",
    text: "Between attention layers sits a small network that pushes every token by itself, whatever the others do. Attention alone has no preferred place; with a perceptron the sphere gets a landscape, and clusters settle in its valleys.",
    action: "Switch the perceptron on (under Values, perceptron, noise) and let it run.",
    preset: "perceptron-off",
    praise: "Same tokens, other places: the perceptron decides where they end.",
    done: (now) => now.spec.model.plus !== undefined && now.time > 0.5,
  },
];

function sameModel(one: Spec, other: Spec): boolean {
  return dimension(one) === dimension(other) && JSON.stringify(one.model) === JSON.stringify(other.model);
}
