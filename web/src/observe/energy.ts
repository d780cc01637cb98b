// The interaction energy of tokenflock/observables/energies.py:
// E = (1/(2 beta)) mean_ij e^{beta <x_i, B x_j>} + (1/2) mean_i v(x_i)   (2312.10794, eq. (3.5); 2601.21366).
import type { Frame } from "../app/contract.ts";
import { scaledBessel } from "../math/bessel.ts";
import { Cloud } from "../physics/attention.ts";
import { quickExp } from "../physics/exp.ts";
import type { Model } from "../physics/model.ts";
import { meanPotential } from "../physics/perceptron.ts";

// From here on the circle's Fourier series is cheaper than the pairs, with the same digits.
const FOURIER_FROM = 256;
// Terms of the series below this share of the first are left out.
const NEGLIGIBLE = 1e-17;

/** The energy of a frame, or null where the model has none: hardmax has no kernel, and R^d no bound. */
export function energyOf(model: Model, frame: Frame): number | null {
  if (model.space === "euclidean" || model.kind === "hardmax") return null;
  const external = model.perceptron === null ? 0 : meanPotential(model.perceptron, frame.points) / 2;
  // At beta = 0 the engine gives the Kuramoto energy, the limit without the constant 1/(2 beta).
  if (model.beta === 0) return meanScore(model, frame.points) / 2 + external;
  const pairs = meanKernel(model, frame.points);
  return (Math.exp(model.beta) * pairs) / (2 * model.beta) + external;
}

/** mean_ij e^{beta (s_ij - 1)}. */
export function meanKernel(model: Model, points: Float64Array): number {
  const own = model.weights.B === null;
  if (own && model.d === 2 && model.n >= FOURIER_FROM) return circleKernel(model.beta, points);
  return own ? pairKernel(model, points) : rowKernel(model, points);
}

/** Half the pairs suffice where s_ij = <x_i, x_j>. */
function pairKernel(model: Model, points: Float64Array): number {
  const { n, d, beta } = model;
  const { x, y, z } = cloudOf(points, n, d);
  let total = 0;
  for (let i = 0; i < n; i++) {
    const xi = x[i]!;
    const yi = y[i]!;
    const zi = z[i]!;
    for (let j = i + 1; j < n; j++)
      total += quickExp(beta * (xi * x[j]! + yi * y[j]! + zi * z[j]! - 1));
  }
  return (n + 2 * total) / (n * n);
}

function rowKernel(model: Model, points: Float64Array): number {
  const { n, d, beta } = model;
  const keys = cloudOf(points, n, d);
  const queries = new Cloud(n);
  queries.loadTransposed(points, model.weights.B!, d);
  let total = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      const score = queries.x[i]! * keys.x[j]! + queries.y[i]! * keys.y[j]! + queries.z[i]! * keys.z[j]!;
      total += quickExp(beta * (score - 1));
    }
  return total / (n * n);
}

/** e^{beta cos} = I_0 + 2 sum_k I_k cos(k .): the mean over pairs is a sum of squared moments. O(n sqrt(beta)). */
function circleKernel(beta: number, points: Float64Array): number {
  const coefficients = scaledBessel(Math.ceil(20 + 9 * Math.sqrt(beta) + beta / 8), beta);
  const most = coefficients.findLastIndex((value) => value > NEGLIGIBLE);
  const moments = circleMoments(points, most);
  let total = coefficients[0]!;
  for (let k = 1; k <= most; k++)
    total += 2 * coefficients[k]! * (moments.real[k]! ** 2 + moments.imaginary[k]! ** 2);
  return total;
}

/** Means of e^{i k theta}, k = 0..most, by multiplication instead of sines. */
export function circleMoments(
  points: Float64Array,
  most: number,
): { real: Float64Array; imaginary: Float64Array } {
  const n = points.length / 2;
  const real = new Float64Array(most + 1);
  const imaginary = new Float64Array(most + 1);
  for (let i = 0; i < n; i++) {
    const c = points[2 * i]!;
    const s = points[2 * i + 1]!;
    let a = 1;
    let b = 0;
    for (let k = 0; k <= most; k++) {
      real[k]! += a / n;
      imaginary[k]! += b / n;
      const turned = a * c - b * s;
      b = a * s + b * c;
      a = turned;
    }
  }
  return { real, imaginary };
}

/** mean_ij <x_i, B x_j>, in O(n). */
function meanScore(model: Model, points: Float64Array): number {
  const { n, d } = model;
  const queries = cloudOf(points, n, d);
  const keys = cloudOf(points, n, d);
  if (model.weights.B !== null) queries.loadTransposed(points, model.weights.B, d);
  const mean = (values: Float64Array) => values.reduce((sum, value) => sum + value, 0) / n;
  return (["x", "y", "z"] as const).reduce((sum, k) => sum + mean(queries[k]) * mean(keys[k]), 0);
}

function cloudOf(points: Float64Array, n: number, d: number): Cloud {
  const cloud = new Cloud(n);
  cloud.load(points, d);
  return cloud;
}
