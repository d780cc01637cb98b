// The sums over tokens, in float64: out_i = sum_j a_ij y_j, with a_ij made from beta <B^T x_i, x_j>.
import type { Backend } from "../app/contract.ts";
import { quickExp } from "./exp.ts";
import type { Model } from "./model.ts";

/** Evaluates the sums of one model, on the CPU or the GPU. */
export interface PairSums {
  readonly backend: Backend;
  /**
   * out_i = speed sum_j a_ij y_j for tokens `compared` and values y `carried` (the same rows except in the
   * rescaled frame). With `dropSelf` any multiple of x_i may be left out of row i, as the caller projects.
   */
  evaluate(compared: Float64Array, carried: Float64Array, dropSelf: boolean, out: Float64Array): void;
  dispose(): void;
}

/** n vectors as three arrays; the third is zero in the plane, so one loop serves d = 2 and d = 3. */
export class Cloud {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly z: Float64Array;

  constructor(n: number) {
    this.x = new Float64Array(n);
    this.y = new Float64Array(n);
    this.z = new Float64Array(n);
  }

  /** Copy n rows of d coordinates. */
  load(rows: Float64Array, d: number): void {
    for (let i = 0, k = 0; i < this.x.length; i++, k += d) {
      this.x[i] = rows[k]!;
      this.y[i] = rows[k + 1]!;
      if (d === 3) this.z[i] = rows[k + 2]!;
    }
  }

  /** Load M^T x for every row x: the queries of the score <x_i, M x_j>. */
  loadTransposed(rows: Float64Array, matrix: Float64Array, d: number): void {
    const target = [this.x, this.y, this.z];
    for (let i = 0; i < this.x.length; i++) {
      for (let e = 0; e < d; e++) {
        let sum = 0;
        for (let k = 0; k < d; k++) sum += rows[i * d + k]! * matrix[k * d + e]!;
        target[e]![i] = sum;
      }
    }
  }
}

/** The sums in JavaScript; buffers are made once and reused at every step. */
export class AttentionSums implements PairSums {
  readonly backend = "js";
  private readonly model: Model;
  private readonly keys: Cloud;
  private readonly queries: Cloud;
  private readonly carriers: Cloud;
  private readonly sums: Cloud;
  private readonly partition: Float64Array;
  private readonly scores: Float64Array;

  constructor(model: Model) {
    this.model = model;
    const n = model.n;
    this.keys = new Cloud(n);
    this.queries = new Cloud(n);
    this.carriers = new Cloud(n);
    this.sums = new Cloud(n);
    this.partition = new Float64Array(n);
    this.scores = new Float64Array(n);
  }

  /** Here `dropSelf` leaves y_i out of row i, but not out of its normalisation, as in the engine. */
  evaluate(compared: Float64Array, carried: Float64Array, dropSelf: boolean, out: Float64Array): void {
    const { d, kind, space, causal, weights } = this.model;
    this.compare(compared);
    const same = compared === carried;
    if (!same) this.carriers.load(carried, d);
    const symmetric = weights.B === null && space === "sphere" && !causal && kind !== "hardmax";
    if (symmetric && same) this.addPairs(dropSelf);
    else this.addRows(same ? this.keys : this.carriers, dropSelf);
    this.write(out);
  }

  dispose(): void {}

  /** Take these tokens as queries and keys. */
  compare(tokens: Float64Array): void {
    const { d, weights } = this.model;
    this.keys.load(tokens, d);
    if (weights.B === null) this.queries.load(tokens, d);
    else this.queries.loadTransposed(tokens, weights.B, d);
  }

  /** Row i of the attention matrix a_ij of the tokens last compared, into `out` (n numbers). */
  row(i: number, out: Float64Array | Float32Array): void {
    const count = this.visible(i);
    const total = this.weigh(count, this.score(i, count));
    const scale = total === 0 ? 0 : this.model.speed / total;
    out.fill(0);
    for (let j = 0; j < count; j++) out[j] = scale * this.scores[j]!;
  }

  /** How many tokens, from the first on, token i sees. */
  private visible(i: number): number {
    const { n, causal, selfTerm } = this.model;
    return causal ? (selfTerm ? i + 1 : i) : n;
  }

  /** Unit tokens compared with themselves: e^{beta(<x,y> - 1)} is symmetric and at most 1. O(n^2/2). */
  private addPairs(dropSelf: boolean): void {
    const { x, y, z } = this.keys;
    const { x: sx, y: sy, z: sz } = this.sums;
    const { n, beta } = this.model;
    const partition = this.partition;
    const own = dropSelf ? 0 : 1;
    for (let i = 0; i < n; i++) {
      partition[i] = 1;
      sx[i] = own * x[i]!;
      sy[i] = own * y[i]!;
      sz[i] = own * z[i]!;
    }
    for (let i = 0; i < n; i++) {
      const xi = x[i]!;
      const yi = y[i]!;
      const zi = z[i]!;
      let ax = 0;
      let ay = 0;
      let az = 0;
      let total = 0;
      for (let j = i + 1; j < n; j++) {
        const xj = x[j]!;
        const yj = y[j]!;
        const zj = z[j]!;
        const weight = quickExp(beta * (xi * xj + yi * yj + zi * zj - 1));
        total += weight;
        ax += weight * xj;
        ay += weight * yj;
        az += weight * zj;
        partition[j]! += weight;
        sx[j]! += weight * xi;
        sy[j]! += weight * yi;
        sz[j]! += weight * zi;
      }
      partition[i]! += total;
      sx[i]! += ax;
      sy[i]! += ay;
      sz[i]! += az;
    }
    if (this.model.kind === "exponential") partition.fill(n);
  }

  /** Any mask, any B, R^d: each row finds its largest score first. O(n^2). */
  private addRows(carriers: Cloud, dropSelf: boolean): void {
    for (let i = 0; i < this.model.n; i++) {
      const count = this.visible(i);
      const total = this.weigh(count, this.score(i, count));
      this.sumRow(i, count, total, carriers, dropSelf);
    }
  }

  /** Fill `scores` of one row and return the largest. */
  private score(i: number, count: number): number {
    const { x, y, z } = this.keys;
    const queries = this.queries;
    const { beta, slope, n } = this.model;
    const scores = this.scores;
    const qx = beta * queries.x[i]!;
    const qy = beta * queries.y[i]!;
    const qz = beta * queries.z[i]!;
    const tilt = slope / n;
    let peak = -Infinity;
    for (let j = 0; j < count; j++) {
      const score = qx * x[j]! + qy * y[j]! + qz * z[j]! - tilt * (i - j);
      scores[j] = score;
      if (score > peak) peak = score;
    }
    return peak;
  }

  /** Turn the scores of a row into weights; returns what their sum is divided by. */
  private weigh(count: number, peak: number): number {
    const { kind, beta, n } = this.model;
    const scores = this.scores;
    const shift = kind === "exponential" ? beta : peak;
    let total = 0;
    for (let j = 0; j < count; j++) {
      // Ties of the hardmax are exact, as in the engine: a tolerance would change who leads.
      const weight = kind === "hardmax" ? Number(scores[j] === peak) : quickExp(scores[j]! - shift);
      scores[j] = weight;
      total += weight;
    }
    return kind === "exponential" ? n : total;
  }

  private sumRow(i: number, count: number, total: number, carriers: Cloud, dropSelf: boolean): void {
    const { x, y, z } = carriers;
    const scores = this.scores;
    let ax = 0;
    let ay = 0;
    let az = 0;
    if (dropSelf && i < count) scores[i] = 0;
    for (let j = 0; j < count; j++) {
      const weight = scores[j]!;
      ax += weight * x[j]!;
      ay += weight * y[j]!;
      az += weight * z[j]!;
    }
    this.sums.x[i] = ax;
    this.sums.y[i] = ay;
    this.sums.z[i] = az;
    this.partition[i] = total;
  }

  /** The quotients, 0 where a token sees nobody. */
  private write(out: Float64Array): void {
    const { x, y, z } = this.sums;
    const { n, d, speed } = this.model;
    for (let i = 0, k = 0; i < n; i++, k += d) {
      const total = this.partition[i]!;
      const scale = total === 0 ? 0 : speed / total;
      out[k] = scale * x[i]!;
      out[k + 1] = scale * y[i]!;
      if (d === 3) out[k + 2] = scale * z[i]!;
    }
  }
}
