// The tour: five steps, each with a scene, two or three sentences, and one thing to do.
import { dimension } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";

/** What a step looks at to see whether its action was done. */
export interface Glance {
  spec: Spec;
  time: number;
  clusters: number;
  edited: boolean;
  ran: number; // time that passed since the model was last changed
}

/** Since when the model is what it is; going back in time takes the moment with it. */
export interface Since {
  model: string;
  time: number;
}

export function sinceWhen(before: Since | null, spec: Spec, time: number): Since {
  const model = JSON.stringify(spec.model);
  return { model, time: before?.model === model ? Math.min(before.time, time) : time };
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
    done: (now, begin) => sameBut([], now, begin) && now.ran > 0.9 && 2 * now.clusters <= begin.clusters,
  },
  {
    title: "β is a temperature",
    text: "β says how choosy attention is. At β = 1, as here, everybody hears everybody and all end in one place. When β is large, tokens hear only their neighbours, and many groups form.",
    action: "Move β to 20 or more, restart, and play until the groups stand still.",
    preset: "warm",
    praise: "Colder attention, more clusters.",
    // By then β = 1 has gathered them all.
    done: (now, begin) =>
      sameBut(["beta"], now, begin) && (now.spec.model.beta ?? 0) >= 20 && now.ran >= 8 && now.clusters > 1,
  },
  {
    title: "Metastability",
    text: "Two groups collapse at once, and then nothing seems to happen. But they do pull on each other, so weakly that the wait grows exponentially with β; in the end they run together within a moment. The staircase of energy shows it.",
    action: "Play until the two groups have become one (raise the speed if you are in a hurry).",
    preset: "metastability",
    praise: "That long wait, and then the jump: metastability.",
    done: (now, begin) => sameBut([], now, begin) && sameStart(now, begin) && now.clusters === 1,
  },
  {
    title: "Causal leaders",
    text: "In a language model a token hears only what came before it. So the first token hears nobody else and never moves: it leads. Others that are far from all earlier ones become leaders too, and the rest gather around them.",
    action: "While it plays, drag any token somewhere else and let it go.",
    preset: "causal",
    praise: "Followers go with whom they hear; earlier tokens did not even notice.",
    done: (now, begin) => now.edited && sameBut([], now, begin),
  },
  {
    title: "What the perceptron changes",
    text: "Between attention layers sits a small network that pushes every token by itself, whatever the others do. Attention alone has no preferred place; with a perceptron the sphere gets a landscape, and clusters settle in its valleys.",
    action: "Switch the perceptron on (under Values, perceptron, noise) and let it run.",
    preset: "perceptron-off",
    praise: "Same tokens, other places: the perceptron decides where they end.",
    done: (now, begin) => sameBut(["plus"], now, begin) && now.spec.model.plus !== undefined && now.ran > 2,
  },
];

/** Whether the model is still that of the step, but for what the step asks to change. Other tokens are welcome. */
function sameBut(free: string[], now: Glance, begin: Glance): boolean {
  const rest = (spec: Spec): string => {
    const kept = Object.entries(spec.model).filter(([key]) => !free.includes(key));
    return JSON.stringify([dimension(spec), kept.sort(([one], [other]) => one.localeCompare(other))]);
  };
  return rest(now.spec) === rest(begin.spec);
}

function sameStart(now: Glance, begin: Glance): boolean {
  return !now.edited && JSON.stringify(now.spec.tokens) === JSON.stringify(begin.spec.tokens);
}
