// Inner products of tokens, and the attention they give each other.
import type { Frame } from "../app/contract.ts";
import { AttentionSums } from "../physics/attention.ts";
import { normaliseRows } from "../physics/linear.ts";
import { type Model, modelOf } from "../physics/model.ts";
import { applyRows, labMatrix } from "../physics/velocity.ts";
import type { Spec } from "../spec/types.ts";

// Pairs of this many tokens, taken evenly, fill a histogram as well as all pairs do.
const HISTOGRAM_TOKENS = 512;

/** |mean of x_i|, and the mean cosine of pairs i != j from |sum of x_i|^2, in O(n). */
export function alignment(points: Float64Array, d: number): { order: number; cosine: number } {
  const n = points.length / d;
  const directions = normaliseRows(points.slice(), d);
  const square = (rows: Float64Array) => {
    const sum = new Float64Array(d);
    for (let k = 0; k < rows.length; k++) sum[k % d]! += rows[k]!;
    return sum.reduce((total, entry) => total + entry * entry, 0);
  };
  let lengths = 0;
  for (let k = 0; k < directions.length; k++) lengths += directions[k]! ** 2;
  return {
    order: Math.sqrt(square(points)) / n,
    cosine: (square(directions) - lengths) / (n * (n - 1)),
  };
}

/** Density on [-1, 1] of the cosines of pairs i != j; tokens are thinned evenly beyond 512. */
export function cosineHistogram(frame: Frame, d: number, bins: number): Float64Array {
  const directions = normaliseRows(frame.points.slice(), d);
  const chosen = thinned(frame.points.length / d, HISTOGRAM_TOKENS);
  const density = new Float64Array(bins);
  const share = bins / (chosen.length * (chosen.length - 1));
  for (let a = 0; a < chosen.length; a++) {
    for (let b = 0; b < a; b++) {
      let cosine = 0;
      for (let k = 0; k < d; k++)
        cosine += directions[chosen[a]! * d + k]! * directions[chosen[b]! * d + k]!;
      const bin = Math.floor(((cosine + 1) / 2) * bins);
      density[Math.min(bins - 1, Math.max(0, bin))]! += share;
    }
  }
  return density;
}

/** a_ij of the model with its mask and B; rows and columns thinned evenly where n > most. */
export function attentionMatrix(
  spec: Spec,
  frame: Frame,
  most: number,
): { size: number; values: Float32Array } {
  const model = modelOf(spec);
  const sums = compared(model, frame);
  const chosen = thinned(model.n, most);
  const values = new Float32Array(chosen.length ** 2);
  const row = new Float64Array(model.n);
  chosen.forEach((token, i) => {
    sums.row(token, row);
    chosen.forEach((other, j) => (values[i * chosen.length + j] = row[other]!));
  });
  return { size: chosen.length, values };
}

/** The attention that one token gives to every other. */
export function attentionRow(spec: Spec, frame: Frame, index: number): Float32Array {
  const model = modelOf(spec);
  const row = new Float32Array(model.n);
  compared(model, frame).row(index, row);
  return row;
}

function compared(model: Model, frame: Frame): AttentionSums {
  const sums = new AttentionSums(model);
  const tokens = frame.points.slice();
  sums.compare(model.rescaled ? applyRows(labMatrix(model, frame.time), tokens, model.d) : tokens);
  return sums;
}

/** At most `most` indices, evenly spaced from the first on. */
function thinned(n: number, most: number): number[] {
  const count = Math.min(n, Math.max(1, most));
  return Array.from({ length: count }, (_, k) => Math.floor((k * n) / count));
}
