// Means of spherical harmonics over tokens, and the mean of e^{beta(<x,y> - 1)} over pairs from them:
// e^{beta u} = sum_l (2l+1) i_l(beta) P_l(u), and mean_ij P_l(<x_i,x_j>) = 4 pi/(2l+1) sum_m |mean Y_lm|^2.
import { scaledBessel } from "../math/bessel.ts";

// Degrees whose weight is below this are left out: the sum is then exact to rounding.
const NEGLIGIBLE = 1e-17;

/** e^{-beta} i_l(beta) up to the last degree that counts. */
export function degreesFor(beta: number): Float64Array {
  const weights = scaledBessel(Math.ceil(24 + 9 * Math.sqrt(beta) + beta / 8), beta, true);
  return weights.subarray(0, 1 + weights.findLastIndex((w, l) => (2 * l + 1) * w > NEGLIGIBLE));
}

/** mean_ij e^{beta(<x_i,x_j> - 1)} of unit tokens in three dimensions. O(n L^2/2) for degrees up to L. */
export function sphereKernel(points: Float64Array, weights: Float64Array): number {
  const power = harmonicPower(points, weights.length - 1);
  return 4 * Math.PI * weights.reduce((sum, weight, l) => sum + weight * power[l]!, 0);
}

/** sum_m |mean of Y_lm|^2 for l = 0..most. */
function harmonicPower(points: Float64Array, most: number): Float64Array {
  const n = points.length / 3;
  const power = new Float64Array(most + 1);
  const turns = { real: new Float64Array(n).fill(1), imaginary: new Float64Array(n) };
  const real = new Float64Array(most + 1);
  const imaginary = new Float64Array(most + 1);
  // Y_mm = sqrt((2m+1)!!/((2m)!! 4 pi)) (x + iy)^m
  let first = 1 / Math.sqrt(4 * Math.PI);
  for (let m = 0; m <= most; m++) {
    const { rises, falls } = recurrence(m, most);
    real.fill(0);
    imaginary.fill(0);
    for (let i = 0; i < n; i++) {
      const z = points[3 * i + 2]!;
      const a = turns.real[i]!;
      const b = turns.imaginary[i]!;
      let before = 0;
      let here = first;
      for (let l = m; l <= most; l++) {
        real[l]! += here * a;
        imaginary[l]! += here * b;
        const next = rises[l]! * z * here - falls[l]! * before;
        before = here;
        here = next;
      }
      const x = points[3 * i]!;
      const y = points[3 * i + 1]!;
      turns.real[i] = a * x - b * y;
      turns.imaginary[i] = a * y + b * x;
    }
    const copies = m === 0 ? 1 : 2; // m and -m
    for (let l = m; l <= most; l++)
      power[l]! += (copies * (real[l]! ** 2 + imaginary[l]! ** 2)) / (n * n);
    first *= Math.sqrt((2 * m + 3) / (2 * m + 2));
  }
  return power;
}

/** Y_{l+1,m} = rises_l z Y_lm - falls_l Y_{l-1,m}, normalised. */
function recurrence(m: number, most: number): { rises: Float64Array; falls: Float64Array } {
  const rise = (l: number) => Math.sqrt((4 * l * l - 1) / (l * l - m * m));
  const rises = new Float64Array(most + 1);
  const falls = new Float64Array(most + 1);
  for (let l = m; l <= most; l++) {
    rises[l] = rise(l + 1);
    falls[l] = l === m ? 0 : rises[l]! / rise(l);
  }
  return { rises, falls };
}
