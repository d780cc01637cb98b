// The exact run between its saved times.
import type { Frame } from "./contract.ts";

const SAME = 1e-9; // relative distance of two times that are the same up to rounding

/** Index of the last time that is not after `time`; -1 before the first. Times ascend. */
export function indexBefore(times: ArrayLike<number>, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The frame at a time: a saved one where there is one, else the cubic through the four nearest
 * (error of the order of the fourth power of their spacing), back on the sphere. Null outside.
 */
export function frameAt(frames: Frame[], time: number, sphere: boolean, d: number): Frame | null {
  const times = frames.map((frame) => frame.time);
  const slack = SAME * Math.max(1, Math.abs(time));
  const before = indexBefore(times, time + slack);
  const near = frames[before];
  if (near === undefined) return null;
  if (Math.abs(near.time - time) <= slack) return near;
  if (before === frames.length - 1) return null;
  const first = Math.max(0, Math.min(before - 1, frames.length - 4));
  const used = frames.slice(first, first + 4);
  const points = new Float64Array(near.points.length);
  used.forEach((frame, k) => {
    const weight = lagrange(used, k, time);
    for (let i = 0; i < points.length; i++) points[i]! += weight * (frame.points[i] as number);
  });
  if (sphere) normaliseRows(points, d);
  return { time, points, radii: null };
}

function lagrange(frames: Frame[], k: number, time: number): number {
  const own = (frames[k] as Frame).time;
  return frames.reduce((product, { time: other }, j) => (j === k ? product : (product * (time - other)) / (own - other)), 1);
}

function normaliseRows(points: Float64Array, d: number): void {
  for (let i = 0; i < points.length; i += d) {
    const row = points.subarray(i, i + d);
    const norm = Math.hypot(...row) || 1;
    for (let k = 0; k < d; k++) row[k]! /= norm;
  }
}
