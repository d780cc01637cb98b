// How far the live tokens are from the engine's float64 run, in words.
import type { Frame } from "../app/contract.ts";

export const OTHER_PATH = "live and exact follow two paths of the same noise: compare their charts, not their tokens";

export function largestDistance(live: Frame, exact: Frame, d: number): number {
  let most = 0;
  for (let i = 0; i + d <= live.points.length; i += d) {
    let square = 0;
    for (let axis = i; axis < i + d; axis += 1) square += (live.points[axis]! - exact.points[axis]!) ** 2;
    most = Math.max(most, square);
  }
  return Math.sqrt(most);
}

/** `saved`: the exact frame is one the engine sent, not one interpolated between two of them. */
export function differenceInWords(live: Frame, exact: Frame, saved: boolean, d: number): string {
  const distance = largestDistance(live, exact, d);
  const words = distance === 0 ? "live and exact agree to the last digit" : `live and exact differ by at most ${rounded(distance)}`;
  return saved ? words : `${words} (the exact run is interpolated to this time)`;
}

/** One digit, upwards: "at most" must hold. */
function rounded(value: number): string {
  const power = 10 ** Math.floor(Math.log10(value));
  return (Math.ceil((value / power) * (1 - 1e-12)) * power).toExponential(0);
}
