// How far the live tokens are from the engine's float64 run, in words.
import type { Frame } from "../app/contract.ts";

const SAME_TIME = 1e-9;

export function largestDistance(live: Frame, exact: Frame, d: number): number {
  let most = 0;
  for (let i = 0; i + d <= live.points.length; i += d) {
    let square = 0;
    for (let axis = i; axis < i + d; axis += 1) square += (live.points[axis]! - exact.points[axis]!) ** 2;
    most = Math.max(most, square);
  }
  return Math.sqrt(most);
}

export function differenceInWords(live: Frame, exact: Frame | null, d: number): string | null {
  if (exact === null || exact.points.length !== live.points.length) return null;
  const gap = exact.time - live.time;
  if (Math.abs(gap) > SAME_TIME * Math.max(1, Math.abs(live.time))) {
    return `the exact run is shown at time ${exact.time.toPrecision(4)}, the closest it has`;
  }
  const distance = largestDistance(live, exact, d);
  return distance === 0 ? "live and exact agree to the last digit" : `live and exact differ by at most ${distance.toExponential(0)}`;
}
