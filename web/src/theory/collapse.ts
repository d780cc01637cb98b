// When and where a start has become two points: the moment from which the equation of two clusters is exact.
import { clustersOf } from "../observe/clusters.ts";
import { makeSimulator } from "../physics/simulator.ts";
import { startTokens } from "../physics/start.ts";
import { defaultStep } from "../spec/bounds.ts";
import { dimension } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";

export interface TwoPoints {
  time: number;
  share: number; // of the tokens in the first
  angle: number;
}

// So many tokens tell the masses and the angle well enough, and their run costs a few milliseconds.
const MOST_TOKENS = 64;
const MOST_STEPS = 800;
const CHECK_EVERY = 10;
// Clusters narrower than this move as points.
const TIGHT = 0.01;

/** Follow the start (thinned evenly) until two tight clusters are left; null where that does not happen soon. */
export function twoPoints(spec: Spec): TwoPoints | null {
  const d = dimension(spec);
  const small: Spec = { ...spec, tokens: { law: "points", d, points: thinnedStart(spec, d), normalise: true } };
  const flow: Spec = { ...small, solve: { t1: 1, method: "fixed", dt: defaultStep(small), seed: 0 } };
  const simulator = makeSimulator(flow, "js");
  for (let steps = 0; steps <= MOST_STEPS; steps += CHECK_EVERY) {
    const found = seen(simulator.points, d);
    if (found !== null) return { ...found, time: simulator.time };
    simulator.advance(CHECK_EVERY);
  }
  return null;
}

function thinnedStart(spec: Spec, d: number): number[][] {
  const { points } = startTokens(spec);
  const n = points.length / d;
  const count = Math.min(n, MOST_TOKENS);
  return Array.from({ length: count }, (_, k) => {
    const i = Math.floor((k * n) / count);
    return Array.from(points.subarray(i * d, (i + 1) * d));
  });
}

/** Share and angle of exactly two tight clusters, or null. */
function seen(points: Float64Array, d: number): { share: number; angle: number } | null {
  const { labels, sizes } = clustersOf(points, d, "sphere");
  if (sizes.length !== 2) return null;
  const centres = sizes.map(() => new Float64Array(d));
  for (let k = 0; k < points.length; k++) centres[labels[Math.floor(k / d)]!]![k % d]! += points[k]!;
  const [a, b] = centres.map((sum) => sum.map((entry) => entry / Math.hypot(...sum)));
  const farthest = (_: number, i: number) =>
    angleBetween(points.subarray(i * d, (i + 1) * d), labels[i] === 0 ? a! : b!);
  if (Math.max(...Array.from(labels, farthest)) > TIGHT) return null;
  return { share: sizes[0]! / labels.length, angle: angleBetween(a!, b!) };
}

/** Angle between unit vectors by 2 atan2(|x-y|, |x+y|). */
function angleBetween(x: Float64Array, y: Float64Array): number {
  const difference = Math.hypot(...x.map((entry, k) => entry - y[k]!));
  return 2 * Math.atan2(difference, Math.hypot(...x.map((entry, k) => entry + y[k]!)));
}
