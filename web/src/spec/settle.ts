// From what somebody asked for to what can be run: steps short enough, and an end that can be reached.
import { largestStep, longestTime, roundedDown } from "./bounds.ts";
import type { Spec } from "./types.ts";

// Beyond this a run is shortened: nobody watches it to the end, and the engine would not finish.
const MOST_STEPS = 1_000_000;

/**
 * The spec with the step and the end that its model allows. The wish itself is kept by whoever asks, so that a
 * model that moves more slowly gets the longer step and the later end back.
 */
export function settled(wanted: Spec): Spec {
  const { solve } = wanted;
  if (solve.method === "fixed") {
    const most = largestStep(wanted);
    const dt = solve.dt > most ? roundedDown(most) : solve.dt;
    return { ...wanted, solve: { ...solve, dt, t1: endOf(wanted, dt) } };
  }
  const layers = Math.max(1, Math.floor(endOf(wanted, solve.step) / solve.step + 1e-9));
  return { ...wanted, solve: { ...solve, t1: layers * solve.step } };
}

function endOf(spec: Spec, step: number): number {
  return Math.min(Math.max(spec.solve.t1, step), MOST_STEPS * step, longestTime(spec));
}

/** Why a run ends before the time that was asked for. */
export function whyEnded(spec: Spec): string {
  const { t1, method } = spec.solve;
  if (t1 > 0.99 * longestTime(spec)) return "later its scores would overflow";
  return method === "layers" ? "a run has whole layers, at most a million" : "a million steps are the most";
}
