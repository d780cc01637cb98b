// The sums over tokens on the circle by Fourier series (as tokenflock/reduce/spectral): O(n sqrt(beta)) instead of
// O(n^2), exact to rounding. With K = e^{beta(cos - 1)} and unit vectors x_i, t_i along and across token i,
// sum_j K_ij x_j = x_i sum_j K_ij cos(theta_j - theta_i) + t_i sum_j K_ij sin(theta_j - theta_i).
import { addMoments, kernelSeries } from "../math/circle.ts";
import type { PairSums } from "./attention.ts";
import type { Model } from "./model.ts";

// A term of the series costs about as much as this many pairs.
const PAIRS_PER_TERM = 2;

/** Whether the series applies and is shorter than the sums it replaces. */
export function suitsCircle(model: Model): boolean {
  const { n, d, space, kind, causal, weights, beta } = model;
  const plain = d === 2 && space === "sphere" && kind !== "hardmax" && !causal && weights.B === null;
  return plain && kernelSeries(beta).length * PAIRS_PER_TERM < n;
}

export class CircleSums implements PairSums {
  readonly backend = "js";
  private readonly model: Model;
  private readonly kernel: Float64Array; // of K
  private readonly along: Float64Array; // of K cos
  private readonly across: Float64Array; // of K sin
  private readonly real: Float64Array;
  private readonly imaginary: Float64Array;

  constructor(model: Model) {
    this.model = model;
    const series = kernelSeries(model.beta);
    const a = (k: number): number => series[Math.abs(k)] ?? 0;
    const terms = (f: (k: number) => number) =>
      Float64Array.from({ length: series.length + 1 }, (_, k) => (k === 0 ? 1 : 2) * f(k));
    this.kernel = terms(a);
    this.along = terms((k) => (a(k - 1) + a(k + 1)) / 2);
    this.across = terms((k) => (a(k - 1) - a(k + 1)) / 2);
    this.real = new Float64Array(this.kernel.length);
    this.imaginary = new Float64Array(this.kernel.length);
  }

  evaluate(points: Float64Array, _: Float64Array, dropSelf: boolean, out: Float64Array): void {
    const { kind, speed } = this.model;
    const { kernel, along, across, real, imaginary } = this;
    addMoments(points, real, imaginary);
    for (let i = 0; i < points.length; i += 2) {
      const x = points[i]!;
      const y = points[i + 1]!;
      let [c, s] = [1, 0]; // cos and sin of k theta_i
      let [total, radial, tangent] = [0, 0, 0];
      for (let k = 0; k < kernel.length; k++) {
        const even = real[k]! * c + imaginary[k]! * s; // mean of cos k(theta_j - theta_i)
        total += kernel[k]! * even;
        radial += along[k]! * even;
        tangent += across[k]! * (imaginary[k]! * c - real[k]! * s);
        const turned = c * x - s * y;
        s = c * y + s * x;
        c = turned;
      }
      const scale = kind === "exponential" ? speed : speed / total;
      const own = dropSelf ? 0 : radial;
      out[i] = scale * (own * x - tangent * y);
      out[i + 1] = scale * (own * y + tangent * x);
    }
  }

  dispose(): void {}
}
