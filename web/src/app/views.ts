// What follows from the state: sizes, what is shown, theory beside it.
import { computed } from "@preact/signals";
import type { RunReplay } from "../replay/types.ts";
import { dimension, spaceOf, tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { curvesFor } from "../theory/index.ts";
import { adoptSpec } from "./adopt.ts";
import type { Store, TheoryCurve } from "./contract.ts";
import { frameAt } from "./interpolate.ts";
import type { State } from "./state.ts";

type Sizes = Pick<Store, "n" | "d" | "space">;
type Screen = Pick<Store, "frame" | "measured" | "track" | "position" | "length" | "stepsShown">;
type Company = Pick<Store, "labels" | "known" | "curves" | "exactFrame">;

export function viewsOf(state: State): Sizes & Screen & Company {
  const sizes = sizesOf(state);
  return { ...sizes, ...screenOf(state), ...companyOf(state, sizes) };
}

function sizesOf({ source, spec }: State): Sizes {
  const shape = (axis: number, live: (spec: Spec) => number): number =>
    source.value.kind === "live" ? live(spec.value) : (source.value.replay.points.shape[axis] ?? 0);
  return {
    n: computed(() => shape(1, tokenCount)),
    d: computed(() => shape(2, dimension)),
    space: computed(() => (source.value.kind === "live" ? spaceOf(spec.value) : source.value.replay.space)),
  };
}

function screenOf({ shown }: State): Screen {
  return {
    frame: computed(() => shown.value.frame),
    measured: computed(() => shown.value.measured),
    track: computed(() => shown.value.track),
    position: computed(() => shown.value.position),
    length: computed(() => shown.value.length),
    stepsShown: computed(() => shown.value.steps),
  };
}

function companyOf({ source, spec, edited, exact, shown }: State, { space, d }: Sizes): Company {
  const known = computed(() => (source.value.kind === "live" ? spec.value : storedSpec(source.value.replay)));
  return {
    known,
    labels: computed(() => (source.value.kind === "replay" ? source.value.replay.labels : null)),
    curves: computed(() => curvesOf(known.value, source.value.kind === "live" && edited.value)),
    exactFrame: computed(() => {
      const run = source.value.kind === "live" ? exact.value : null;
      return run && frameAt(run.frames, shown.value.frame.time, space.value === "sphere", d.value);
    }),
  };
}

/** Theory speaks about a run from its own start with one model. */
function curvesOf(known: Spec | string, edited: boolean): TheoryCurve[] {
  return edited || typeof known === "string" ? [] : curvesFor(known);
}

/** The spec behind the tokens of a replay, or a sentence why there is none. */
function storedSpec({ kind, spec, points }: RunReplay): Spec | string {
  if (kind === "trace") return "These are tokens of a trained network, which follow no model of this page.";
  const adopted = adoptSpec(spec);
  if (typeof adopted === "string") return adopted;
  const [, n, d] = points.shape;
  const same = tokenCount(adopted) === n && dimension(adopted) === d;
  return same ? adopted : "The spec stored with this run has other tokens than those shown.";
}
