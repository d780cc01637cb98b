// Spherical harmonics Y_lm = Q_lm(z) (x + iy)^m, m >= 0, orthonormal on the sphere, by their recurrence in l.
// e^{beta u} = sum_l (2l+1) i_l(beta) P_l(u), and P_l(<x,y>) = 4 pi/(2l+1) sum_m Y_lm(x) conj(Y_lm(y)).
import { scaledBessel } from "./bessel.ts";

// Degrees whose weight is below this are left out: the sum is then exact to rounding.
const NEGLIGIBLE = 1e-17;

/** e^{-beta} i_l(beta) up to the last degree that counts, beta > 0. */
export function degreesFor(beta: number): Float64Array {
  const weights = scaledBessel(Math.ceil(24 + 9 * Math.sqrt(beta) + beta / 8), beta, true);
  return weights.subarray(0, 1 + weights.findLastIndex((w, l) => (2 * l + 1) * w > NEGLIGIBLE));
}

/** Recurrences up to degree `most`. Tables have a row per m, with a column per l. */
export class Harmonics {
  readonly size: number;
  readonly firsts: Float64Array; // Q_mm
  readonly rises: Float64Array; // Q_{l+1,m} = rises z Q_lm - falls Q_{l-1,m}
  readonly falls: Float64Array;

  constructor(most: number) {
    this.size = most + 1;
    this.firsts = new Float64Array(this.size);
    this.rises = new Float64Array(this.size ** 2);
    this.falls = new Float64Array(this.size ** 2);
    // Q_mm^2 = (2m+1)!!/((2m)!! 4 pi)
    let first = 1 / Math.sqrt(4 * Math.PI);
    for (let m = 0; m < this.size; m++) {
      this.firsts[m] = first;
      first *= Math.sqrt((2 * m + 3) / (2 * m + 2));
      const rise = (l: number) => Math.sqrt((4 * l * l - 1) / (l * l - m * m));
      for (let l = m; l < this.size; l++) {
        this.rises[m * this.size + l] = rise(l + 1);
        this.falls[m * this.size + l] = l === m ? 0 : rise(l + 1) / rise(l);
      }
    }
  }

  /** Means of Y_lm over unit rows (x, y, z), into tables. O(n L^2/2). */
  addMoments(points: Float64Array, real: Float64Array, imaginary: Float64Array): void {
    const { size, rises, falls } = this;
    real.fill(0);
    imaginary.fill(0);
    for (let i = 0; i < points.length; i += 3) {
      const x = points[i]!;
      const y = points[i + 1]!;
      const z = points[i + 2]!;
      let a = 3 / points.length; // (x + iy)^m / n
      let b = 0;
      for (let m = 0; m < size; m++) {
        let before = 0;
        let here = this.firsts[m]!;
        for (let k = m * size + m; k < (m + 1) * size; k++) {
          real[k]! += here * a;
          imaginary[k]! += here * b;
          const next = rises[k]! * z * here - falls[k]! * before;
          before = here;
          here = next;
        }
        const turned = a * x - b * y;
        b = a * y + b * x;
        a = turned;
      }
    }
  }
}
