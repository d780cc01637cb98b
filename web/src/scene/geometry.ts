// Where tokens stand in the scene: the sphere and the circle as they are, R^d scaled into the unit box.
import type { Frame } from "../app/contract.ts";

export type Stage = "sphere" | "circle" | "box" | "plane";

export function stageOf(space: "sphere" | "euclidean", d: number): Stage {
  if (space === "sphere") return d === 2 ? "circle" : "sphere";
  return d === 2 ? "plane" : "box";
}

export const isFlat = (stage: Stage): boolean => stage === "circle" || stage === "plane";
export const isRound = (stage: Stage): boolean => stage === "sphere" || stage === "circle";

/** Points (n * d) as scene coordinates (n * 3), divided by `extent`. */
export function toWorld(frame: Pick<Frame, "points">, d: number, extent: number): Float32Array {
  const { points } = frame;
  const count = Math.floor(points.length / d);
  const world = new Float32Array(count * 3);
  for (let i = 0; i < count; i += 1) {
    world[3 * i] = points[d * i]! / extent;
    world[3 * i + 1] = points[d * i + 1]! / extent;
    world[3 * i + 2] = d === 3 ? points[3 * i + 2]! / extent : 0;
  }
  return world;
}

/** Largest coordinate, the half width of the box that R^d needs. */
export function reach(points: Float64Array): number {
  let most = 0;
  for (const value of points) {
    const size = Math.abs(value);
    if (size > most && Number.isFinite(size)) most = size;
  }
  return most;
}

const TICK_STEPS = [1, 2, 5, 10];
const EXTENTS = [1, 1.5, 2, 3, 5, 7, 10];

/** The smallest of these steps (1 to 10) times a power of ten that is not below `value`. */
export function niceAbove(value: number, steps: readonly number[] = TICK_STEPS): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  // A hair of slack: 0.3 / 0.1 is above 3 in floating point.
  return (steps.find((step) => step * power >= value * (1 - 1e-12)) ?? 10) * power;
}

const SHRINK_BELOW = 0.45;

/** The half width to draw R^d with. It grows at once and shrinks late, so that axes do not flicker. */
export function nextExtent(present: number | null, needed: number): number {
  if (present === null || needed > present) return niceAbove(needed, EXTENTS);
  return needed > 0 && needed < SHRINK_BELOW * present ? niceAbove(needed, EXTENTS) : present;
}

/** Values of a few round ticks in [low, high]. */
export function ticks(low: number, high: number, wanted: number): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [];
  const step = niceAbove(span / Math.max(1, wanted));
  const values: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k += 1) values.push(k * step);
  return values;
}

export function tickText(value: number): string {
  return value === 0 ? "0" : String(Number(value.toPrecision(4))).replace("-", "−");
}

/** Convex hull of n points in the plane (Andrew's monotone chain, O(n log n)): indices, counterclockwise. */
export function convexHull(points: Float64Array): number[] {
  const count = points.length / 2;
  const x = (i: number) => points[2 * i]!;
  const y = (i: number) => points[2 * i + 1]!;
  const turn = (a: number, b: number, c: number) => (x(b) - x(a)) * (y(c) - y(a)) - (y(b) - y(a)) * (x(c) - x(a));
  const order = Array.from({ length: count }, (_, i) => i).sort((a, b) => x(a) - x(b) || y(a) - y(b));
  const chain = (indices: number[]): number[] => {
    const line: number[] = [];
    for (const i of indices) {
      while (line.length > 1 && turn(line.at(-2)!, line.at(-1)!, i) <= 0) line.pop();
      line.push(i);
    }
    return line.slice(0, -1);
  };
  return count < 3 ? order : [...chain(order), ...chain(order.reverse())];
}

/** Radius of a token in CSS pixels: a few large ones, many small ones. */
export function tokenRadius(count: number, side: number): number {
  const scale = Math.min(1.3, Math.max(0.7, side / 600));
  return Math.max(1.8, 14 * scale * Math.max(2, count) ** -0.2);
}
