// The sums over tokens on the sphere by harmonics: O(n L^2) with L of order sqrt(beta), exact to rounding. With
// S(x) = sum_j e^{beta(<x,x_j> - 1)}, the tangent part of sum_j K_j x_j is (1/beta) grad S, and its part along x is
// sum_j K_j <x,x_j>, a series with other coefficients.
import { degreesFor, Harmonics } from "../math/harmonics.ts";
import type { PairSums } from "./attention.ts";
import type { Model } from "./model.ts";

// L^2 harmonics per token cost as much as this many keys.
const KEYS_PER_HARMONIC = 2 / 3;

/** Whether the series applies and is shorter than the sums it replaces. */
export function suitsSphere(model: Model): boolean {
  const { n, d, space, kind, causal, weights, beta } = model;
  const plain = d === 3 && space === "sphere" && kind !== "hardmax" && !causal && weights.B === null;
  return plain && beta > 0 && harmonicsPerToken(model) * KEYS_PER_HARMONIC < n;
}

/** L^2, the size of the series. */
export function harmonicsPerToken(model: Model): number {
  return degreesFor(model.beta).length ** 2;
}

export class SphereSums implements PairSums {
  readonly backend = "js";
  private readonly model: Model;
  private readonly harmonics: Harmonics;
  private readonly kernel: Float64Array; // weights of degrees in S
  private readonly along: Float64Array; // and in sum_j K_j <x,x_j>
  private readonly real: Float64Array;
  private readonly imaginary: Float64Array;
  private readonly sums = new Float64Array(4); // value and gradient at one point

  constructor(model: Model) {
    this.model = model;
    const degrees = degreesFor(model.beta);
    const i = (l: number): number => degrees[l] ?? 0;
    this.harmonics = new Harmonics(degrees.length - 1);
    this.kernel = degrees.map((value) => 4 * Math.PI * value);
    // (2l+1) d i_l/d beta = l i_{l-1} + (l+1) i_{l+1}
    this.along = degrees.map(
      (_, l) => (4 * Math.PI * (l * i(l - 1) + (l + 1) * i(l + 1))) / (2 * l + 1),
    );
    this.real = new Float64Array(degrees.length ** 2);
    this.imaginary = new Float64Array(degrees.length ** 2);
  }

  evaluate(points: Float64Array, _: Float64Array, dropSelf: boolean, out: Float64Array): void {
    const { kind, speed, beta } = this.model;
    this.harmonics.addMoments(points, this.real, this.imaginary);
    const sums = this.sums;
    for (let i = 0; i < points.length; i += 3) {
      const x = points[i]!;
      const y = points[i + 1]!;
      const z = points[i + 2]!;
      this.sumAt(x, y, z, this.kernel);
      const scale = kind === "exponential" ? speed : speed / sums[0]!;
      // The gradient of the series off the sphere is not that of S: only its tangent part counts.
      const gx = sums[1]! / beta;
      const gy = sums[2]! / beta;
      const gz = sums[3]! / beta;
      if (!dropSelf) this.sumAt(x, y, z, this.along);
      const own = (dropSelf ? 0 : sums[0]!) - (gx * x + gy * y + gz * z);
      out[i] = scale * (gx + own * x);
      out[i + 1] = scale * (gy + own * y);
      out[i + 2] = scale * (gz + own * z);
    }
  }

  dispose(): void {}

  /** The series with these weights and its gradient at one point, into `sums`. */
  private sumAt(x: number, y: number, z: number, weights: Float64Array): void {
    const { real, imaginary, sums } = this;
    const { size, firsts, rises, falls } = this.harmonics;
    sums.fill(0);
    let a = 1; // a + ib = (x + iy)^m
    let b = 0;
    let c = 0; // c + ie = m (x + iy)^{m-1}
    let e = 0;
    for (let m = 0; m < size; m++) {
      // Sums over l of weight_l conj(moment_lm) times Q_lm and its derivative in z.
      let valueReal = 0;
      let valueImaginary = 0;
      let slopeReal = 0;
      let slopeImaginary = 0;
      let before = 0;
      let here = firsts[m]!;
      let slopeBefore = 0;
      let slope = 0;
      for (let l = m, k = m * size + m; l < size; l++, k++) {
        const re = weights[l]! * real[k]!;
        const im = weights[l]! * imaginary[k]!;
        valueReal += here * re;
        valueImaginary += here * im;
        slopeReal += slope * re;
        slopeImaginary += slope * im;
        const rise = rises[k]!;
        const fall = falls[k]!;
        const next = rise * z * here - fall * before;
        const nextSlope = rise * (here + z * slope) - fall * slopeBefore;
        before = here;
        here = next;
        slopeBefore = slope;
        slope = nextSlope;
      }
      const copies = m === 0 ? 1 : 2; // m and -m
      sums[0]! += copies * (a * valueReal + b * valueImaginary);
      sums[1]! += copies * (c * valueReal + e * valueImaginary);
      sums[2]! += copies * (c * valueImaginary - e * valueReal);
      sums[3]! += copies * (a * slopeReal + b * slopeImaginary);
      c = (m + 1) * a;
      e = (m + 1) * b;
      const turned = a * x - b * y;
      b = a * y + b * x;
      a = turned;
    }
  }
}
