// What a chart over time shows: measured lines, the exact run beside them, and what theory says.
import type { Store, TheoryCurve, Track } from "../app/contract.ts";
import { grid, type Line, thin } from "./lines.ts";

export type Quantity = TheoryCurve["quantity"];

export interface Curve {
  kind: "measured" | "exact" | "theory";
  quantity: Quantity;
  order: number; // among those of its kind, for its colour
  label: string;
  source: string;
  note: string;
  line: Line;
}

export const NAMES: Record<Quantity, string> = {
  energy: "energy",
  clusters: "clusters",
  order: "order parameter |mean of xᵢ|",
  cosine: "mean cosine",
};

const MOST_POINTS = 800;
const THEORY_POINTS = 160;

export interface Span {
  from: number;
  to: number;
  log: boolean;
}

/** The part of the clock that is shown: what has been measured, live or exactly. */
export function spanOf(store: Store, log: boolean): Span {
  const all = [store.track.value.times, store.exact.value?.track.times ?? []];
  const to = Math.max(store.frame.value.time, ...all.map((times) => times.at(-1) ?? 0));
  if (!log) return { from: 0, to: to > 0 ? to : 1, log };
  const firsts = all.flatMap((times) => times.find((time) => time > 0) ?? []);
  const from = Math.min(...firsts, to / 2);
  return from > 0 && to > from ? { from, to, log } : { from: 1e-2, to: 1, log };
}

export function curvesOf(store: Store, quantities: Quantity[], span: Span): Curve[] {
  const exact = store.exact.value;
  const measured = quantities.flatMap((name, i) => trackCurve("measured", name, i, store.track.value, span) ?? []);
  const engine = exact === null ? [] : quantities.flatMap((name, i) => trackCurve("exact", name, i, exact.track, span) ?? []);
  const theory = store.curves.value.filter((curve) => quantities.includes(curve.quantity));
  return [...measured, ...engine, ...theory.map((curve, i) => theoryCurve(curve, i, span))];
}

function trackCurve(
  kind: "measured" | "exact",
  quantity: Quantity,
  order: number,
  track: Track,
  span: Span,
): Curve | null {
  const line = thin({ times: track.times, values: track[quantity] }, MOST_POINTS);
  if (line.times.length === 0) return null;
  const label = kind === "exact" ? `${NAMES[quantity]}, exact` : NAMES[quantity];
  return { kind, quantity, order, label, source: "", note: "", line: span.log ? positive(line) : line };
}

/** A logarithmic clock has no zero. */
function positive(line: { times: number[]; values: number[] }): Line {
  const first = line.times.findIndex((time) => time > 0);
  return first < 0 ? { times: [], values: [] } : { times: line.times.slice(first), values: line.values.slice(first) };
}

function theoryCurve(curve: TheoryCurve, order: number, span: Span): Curve {
  const times = grid(span.from, span.to, THEORY_POINTS, span.log);
  const values = times.map((time) => curve.at(time));
  const { quantity, label, source, note } = curve;
  return { kind: "theory", quantity, order, label, source, note, line: { times, values } };
}
