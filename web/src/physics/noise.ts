// Brownian increments from the browser's own generator. Step m always draws the same numbers, so going back
// and running on gives the same path; the engine's tree of increments (diffrax) is another path of the same law.
import { fillNormal } from "./random/normal.ts";
import { foldIn, keyOf } from "./random/threefry.ts";

/** Fills `out` with the increments W(t + dt) - W(t) of step number `step`. */
export type Increments = (step: number, out: Float64Array) => void;

/** N(0, dt) increments of a seed. */
export function brownian(seed: number, dt: number): Increments {
  const key = keyOf(seed);
  const deviation = Math.sqrt(dt);
  return (step, out) => {
    fillNormal(foldIn(key, step), out);
    for (let k = 0; k < out.length; k++) out[k]! *= deviation;
  };
}
