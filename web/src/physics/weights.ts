// The matrices of attention, given or drawn as tokenflock/weights.py draws them.
import { dimension } from "../spec/size.ts";
import type { LawSpec, Matrix, Spec } from "../spec/types.ts";
import { flatten } from "./linear.ts";
import { foldIn, type Key, keyOf, split } from "./random/threefry.ts";
import { normal } from "./random/normal.ts";

/** V is a number (times the identity) or a matrix; B = Q^T K is a matrix or null for the identity. */
export interface Weights {
  V: number | Float64Array;
  B: Float64Array | null;
}

/** The weights of a spec's model. */
export function drawWeights(spec: Spec): Weights {
  const given = spec.model.weights ?? {};
  const key = keyOf(given.seed ?? 0);
  const d = dimension(spec);
  const V = given.V ?? 1;
  return {
    V: typeof V === "number" ? V : matrixOf(V, "V", key, d),
    B: given.B === undefined ? null : matrixOf(given.B, "B", key, d),
  };
}

function matrixOf(given: Matrix | LawSpec, name: "V" | "B", key: Key, d: number): Float64Array {
  if (Array.isArray(given)) return flatten(given);
  // RandomWeights folds the letter into the key, then splits it over heads; the page has one head.
  const head = split(foldIn(key, name.charCodeAt(0)), 1)[0]!;
  return drawLaw(given, normal(head, d * d), d);
}

function drawLaw(given: LawSpec, g: Float64Array, d: number): Float64Array {
  const at = (i: number, j: number): number => g[i * d + j]!;
  const entry = {
    Ginibre: at,
    Wigner: (i: number, j: number) => at(Math.min(i, j), Math.max(i, j)),
    GOE: (i: number, j: number) => (at(i, j) + at(j, i)) / Math.SQRT2,
  }[given.law];
  return g.map((_, index) => given.scale * entry(Math.floor(index / d), index % d));
}
