// Sizes that follow from a spec.
import type { Spec } from "./types.ts";

export type SpaceName = "sphere" | "euclidean";

/** Number of tokens. */
export function tokenCount(spec: Spec): number {
  const tokens = spec.tokens;
  switch (tokens.law) {
    case "arcs":
    case "mixture":
      return tokens.centres.length * tokens.per_cluster;
    case "points":
      return tokens.points.length;
    default:
      return tokens.n;
  }
}

/** Number of coordinates of a token. */
export function dimension(spec: Spec): 2 | 3 {
  return spec.tokens.d;
}

/** Where the tokens live; the engine's default of each law where the spec is silent. */
export function spaceOf(spec: Spec): SpaceName {
  return spec.tokens.space ?? (spec.tokens.law === "box" ? "euclidean" : "sphere");
}

/** Time made by one step: dt of the flow, or the weight of a layer. */
export function stepOf(spec: Spec): number {
  return spec.solve.method === "fixed" ? spec.solve.dt : spec.solve.step;
}
