// The right-hand side of the equation: attention, perceptron and drift, shaped by the normalisation scheme.
import type { PairSums } from "./attention.ts";
import { exponential, identity, norm, normaliseRows } from "./linear.ts";
import type { Model } from "./model.ts";
import { growsAt, shapeUpdate } from "./normalisation.ts";
import { addPerceptron } from "./perceptron.ts";

// e^{2 |V| t} enters the scores of the rescaled frame. Attention is one-hot in double precision long before
// this exponent, so time may stop growing there.
const LARGEST_EXPONENT = 600;

export interface Velocity {
  readonly points: Float64Array;
  readonly radii: Float64Array | null;
}

/** Evaluates a model; owns its buffers. */
export class Field {
  readonly model: Model;
  private readonly sums: PairSums;
  private readonly here: Float64Array;
  private readonly lab: Float64Array;

  constructor(model: Model, sums: PairSums) {
    this.model = model;
    this.sums = sums;
    this.here = new Float64Array(model.n * model.d);
    this.lab = new Float64Array(model.rescaled ? model.n * model.d : 0);
  }

  /** dx/dt (and dr/dt) at a state whose points may have left the sphere: they are retracted first. */
  velocity(t: number, points: Float64Array, radii: Float64Array | null, out: Velocity): void {
    const { d, space, scheme } = this.model;
    this.here.set(points);
    if (space === "euclidean") return this.force(t, this.here, false, out.points);
    normaliseRows(this.here, d);
    this.force(t, this.here, this.model.dropSelf, out.points);
    shapeUpdate(scheme, t, out.points, d);
    if (radii !== null) this.moveRadii(t, radii, out);
    projectRows(this.here, out.points, d);
  }

  /** The raw output A of every token, before normalisation and projection. */
  force(t: number, points: Float64Array, dropSelf: boolean, out: Float64Array): void {
    const { rescaled, weights, d, perceptron, drift } = this.model;
    const compared = rescaled ? this.toLab(t, points) : points;
    this.sums.evaluate(compared, points, dropSelf, out);
    if (rescaled) for (let k = 0; k < out.length; k++) out[k]! -= points[k]!;
    applyRows(weights.V, out, d);
    if (drift !== 0) for (let k = 0; k < out.length; k++) out[k]! += drift * points[k]!;
    if (perceptron !== null) addPerceptron(perceptron, points, out);
  }

  /** x = e^{tV} z, as attention compares tokens in the rescaled frame. */
  toLab(t: number, z: Float64Array): Float64Array {
    this.lab.set(z);
    return applyRows(labMatrix(this.model, t), this.lab, this.model.d) as Float64Array;
  }

  private moveRadii(t: number, radii: Float64Array, out: Velocity): void {
    const d = this.model.d;
    const grows = growsAt(this.model.scheme, t);
    for (let i = 0; i < radii.length; i++) {
      let radial = 0;
      for (let k = i * d; k < (i + 1) * d; k++) radial += this.here[k]! * out.points[k]!;
      out.radii![i] = grows ? radial : 0;
      if (!grows) continue;
      for (let k = i * d; k < (i + 1) * d; k++) out.points[k]! /= radii[i]!;
    }
  }
}

/** e^{tV}, with time held where the scores would overflow. */
export function labMatrix(model: Model, t: number): Float64Array {
  const V = model.weights.V;
  const matrix = typeof V === "number" ? identity(model.d, V) : V;
  const held = Math.min(t, LARGEST_EXPONENT / (2 * norm(matrix) || 1));
  return exponential(
    matrix.map((entry) => held * entry),
    model.d,
  );
}

/** Rows x become V x, in place. */
export function applyRows(V: number | Float64Array, rows: Float64Array, d: number): Float64Array {
  if (typeof V === "number") {
    if (V !== 1) for (let k = 0; k < rows.length; k++) rows[k]! *= V;
    return rows;
  }
  for (let start = 0; start < rows.length; start += d) {
    const x = rows[start]!;
    const y = rows[start + 1]!;
    const z = d === 3 ? rows[start + 2]! : 0;
    for (let k = 0; k < d; k++) {
      const third = d === 3 ? V[k * d + 2]! * z : 0;
      rows[start + k] = V[k * d]! * x + V[k * d + 1]! * y + third;
    }
  }
  return rows;
}

/** v <- v - <x, v> x for unit rows x. */
export function projectRows(x: Float64Array, v: Float64Array, d: number): void {
  for (let start = 0; start < x.length; start += d) {
    let along = 0;
    for (let k = start; k < start + d; k++) along += x[k]! * v[k]!;
    for (let k = start; k < start + d; k++) v[k]! -= along * x[k]!;
  }
}
