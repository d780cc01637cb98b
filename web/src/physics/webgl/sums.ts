// The sums over tokens on the GPU. Steps, normalisation and noise stay in float64 in JavaScript: only the O(n^2)
// part runs here, with a readback per stage, so every model on the same tokens has the same code around it.
import type { Backend } from "../../app/contract.ts";
import { AttentionSums, type PairSums } from "../attention.ts";
import type { Model } from "../model.ts";
import { type Compute, rowsOf } from "./context.ts";
import { ROW, variantOf } from "./shader.ts";

const UNITS = ["high", "low", "queries"] as const;

/** Whether these sums can run on the GPU: not in the rescaled frame, where values are not the keys. */
export function runsOnGpu(model: Model): boolean {
  return !model.rescaled;
}

export class GpuSums implements PairSums {
  private readonly model: Model;
  private readonly compute: Compute;
  private readonly buffers: Float32Array[];
  private readonly textures: WebGLTexture[];
  private readonly target: WebGLTexture;
  private readonly result: Float32Array;
  private fallback: AttentionSums | null = null;

  constructor(model: Model, compute: Compute) {
    this.model = model;
    this.compute = compute;
    const size = 4 * ROW * rowsOf(model.n);
    this.buffers = UNITS.map(() => new Float32Array(size));
    this.textures = UNITS.map(() => compute.texture(model.n));
    this.target = compute.texture(model.n);
    this.result = new Float32Array(size);
    this.configure();
  }

  get backend(): Backend {
    return this.fallback === null ? "webgl2" : "js";
  }

  evaluate(compared: Float64Array, carried: Float64Array, dropSelf: boolean, out: Float64Array): void {
    if (this.fallback === null) {
      this.upload(compared);
      this.compute.run(this.target, this.result);
      // A lost context reads back nothing: the same points are summed again in JavaScript, from now on.
      if (this.compute.lost) this.fallback = new AttentionSums(this.model);
    }
    if (this.fallback === null) this.write(compared, dropSelf, out);
    else this.fallback.evaluate(compared, carried, dropSelf, out);
  }

  dispose(): void {
    for (const texture of [...this.textures, this.target]) this.compute.gl.deleteTexture(texture);
  }

  private configure(): void {
    const { gl } = this.compute;
    const { n, beta, causal, selfTerm, slope, kind } = this.model;
    const program = this.compute.program(variantOf(this.model));
    gl.useProgram(program.handle);
    UNITS.forEach((name, unit) => gl.uniform1i(program.uniform(name), unit));
    gl.uniform1i(program.uniform("count"), n);
    gl.uniform1i(program.uniform("causal"), Number(causal));
    gl.uniform1i(program.uniform("selfTerm"), Number(selfTerm));
    gl.uniform1i(program.uniform("exponential"), Number(kind === "exponential"));
    gl.uniform1f(program.uniform("beta"), beta);
    gl.uniform1f(program.uniform("tilt"), slope / n);
  }

  /** Tokens in two float32 pieces, and queries beta B^T x where scores are not distances. */
  private upload(points: Float64Array): void {
    const { n, d } = this.model;
    const [high, low, queries] = this.buffers as [Float32Array, Float32Array, Float32Array];
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < d; k++) {
        const value = points[i * d + k]!;
        const rounded = Math.fround(value);
        high[4 * i + k] = rounded;
        low[4 * i + k] = value - rounded;
      }
    }
    this.textures.forEach((texture, unit) => {
      if (unit === 2 && variantOf(this.model) === "shifted") return this.bind(unit);
      if (unit === 2) this.loadQueries(points, queries);
      this.compute.load(unit, texture, this.buffers[unit]!);
    });
  }

  private bind(unit: number): void {
    const { gl } = this.compute;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, this.textures[unit]!);
  }

  private loadQueries(points: Float64Array, queries: Float32Array): void {
    const { n, d, beta, weights } = this.model;
    for (let i = 0; i < n; i++) {
      for (let e = 0; e < d; e++) {
        let sum = 0;
        if (weights.B === null) sum = points[i * d + e]!;
        else for (let k = 0; k < d; k++) sum += points[i * d + k]! * weights.B[k * d + e]!;
        queries[4 * i + e] = beta * sum;
      }
    }
  }

  /**
   * sum_j k_ij x_j = sum_j k_ij (x_j - x_i) + x_i sum_j k_ij; the last part is a multiple of x_i, which the
   * projection would only remove again where `dropSelf` holds.
   */
  private write(points: Float64Array, dropSelf: boolean, out: Float64Array): void {
    const { n, d, kind, speed } = this.model;
    for (let i = 0; i < n; i++) {
      const total = this.result[4 * i + 3]!;
      const norm = kind === "exponential" ? n : total;
      const scale = norm === 0 ? 0 : speed / norm;
      const own = dropSelf ? 0 : total;
      for (let k = 0; k < d; k++)
        out[i * d + k] = scale * (this.result[4 * i + k]! + own * points[i * d + k]!);
    }
  }
}
