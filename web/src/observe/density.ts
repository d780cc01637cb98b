// The density of tokens on the circle and its modes.
import type { Frame } from "../app/contract.ts";
import { scaledBessel } from "../math/bessel.ts";
import { addMoments } from "../math/circle.ts";

/** Width in radians of the von Mises kernel that smooths the tokens: concentration 1/width^2. */
export const DENSITY_BANDWIDTH = 0.15;
// Peaks lower than this share of the highest are ripples of the series, not modes.
const LOWEST_MODE = 0.02;

export interface CircleDensity {
  angles: Float64Array; // in [-pi, pi)
  density: Float64Array; // integrates to one
  modes: number[]; // angles of local maxima, highest first
}

/** Kernel estimate (1/n) sum_i vonMises(theta - theta_i), by its Fourier series. O((n + bins)/bandwidth). */
export function circleDensity(frame: Frame, bins: number): CircleDensity {
  const concentration = DENSITY_BANDWIDTH ** -2;
  const kernel = scaledBessel(Math.ceil(9 / DENSITY_BANDWIDTH), concentration);
  const real = new Float64Array(kernel.length);
  const imaginary = new Float64Array(kernel.length);
  addMoments(frame.points, real, imaginary);
  const angles = Float64Array.from({ length: bins }, (_, b) => -Math.PI + (2 * Math.PI * b) / bins);
  const density = angles.map((angle) => {
    let value = 0.5;
    for (let k = 1; k < kernel.length; k++) {
      const wave = real[k]! * Math.cos(k * angle) + imaginary[k]! * Math.sin(k * angle);
      value += (kernel[k]! / kernel[0]!) * wave;
    }
    return Math.max(0, value / Math.PI);
  });
  return { angles, density, modes: modesOf(angles, density) };
}

/** Local maxima, refined by the parabola through three bins. */
function modesOf(angles: Float64Array, density: Float64Array): number[] {
  const bins = density.length;
  const highest = density.reduce((most, value) => Math.max(most, value), 0);
  const found: { angle: number; height: number }[] = [];
  for (let b = 0; b < bins; b++) {
    const here = density[b]!;
    const before = density[(b + bins - 1) % bins]!;
    const after = density[(b + 1) % bins]!;
    if (here <= before || here < after || here < LOWEST_MODE * highest) continue;
    const shift = (0.5 * (before - after)) / (before - 2 * here + after);
    found.push({ angle: angles[b]! + (shift * 2 * Math.PI) / bins, height: here });
  }
  return found.sort((a, b) => b.height - a.height).map(({ angle }) => angle);
}
