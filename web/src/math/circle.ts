// Fourier series on the circle.
import { scaledBessel } from "./bessel.ts";

// Terms whose weight is below this are left out: the sum is then exact to rounding.
const NEGLIGIBLE = 1e-17;

/** e^{-beta} I_k(beta), the coefficients of e^{beta(cos - 1)}, up to the last that counts. */
export function kernelSeries(beta: number): Float64Array {
  if (beta === 0) return Float64Array.of(1);
  const values = scaledBessel(Math.ceil(20 + 9 * Math.sqrt(beta) + beta / 8), beta);
  return values.subarray(0, 1 + values.findLastIndex((value) => value > NEGLIGIBLE));
}

/** Add up the means of cos(k theta) and sin(k theta) over unit rows, k below the arrays' length. */
export function addMoments(points: Float64Array, real: Float64Array, imaginary: Float64Array): void {
  const share = 2 / points.length;
  real.fill(0);
  imaginary.fill(0);
  for (let i = 0; i < points.length; i += 2) {
    const c = points[i]!;
    const s = points[i + 1]!;
    let a = share;
    let b = 0;
    for (let k = 0; k < real.length; k++) {
      real[k]! += a;
      imaginary[k]! += b;
      const turned = a * c - b * s;
      b = a * s + b * c;
      a = turned;
    }
  }
}
