// The interaction energy of tokenflock/observables/energies.py:
// E = (1/(2 beta)) mean_ij e^{beta <x_i, B x_j>} + (1/2) mean_i v(x_i)   (2312.10794, eq. (3.5); 2601.21366).
import type { Frame } from "../app/contract.ts";
import { addMoments, kernelSeries } from "../math/circle.ts";
import { degreesFor, Harmonics } from "../math/harmonics.ts";
import { Cloud } from "../physics/attention.ts";
import { quickExp } from "../physics/exp.ts";
import type { Model } from "../physics/model.ts";
import { meanPotential } from "../physics/perceptron.ts";

// From here on a series in harmonics may be cheaper than the pairs, with the same digits.
const SERIES_FROM = 256;

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
  const { n, d, beta, weights } = model;
  if (weights.B !== null) return rowKernel(model, points);
  if (n < SERIES_FROM) return pairKernel(model, points);
  if (d === 2) return circleKernel(beta, points);
  const degrees = degreesFor(beta);
  // A harmonic costs a quarter of a pair: L^2/2 of them per token against n/2 pairs.
  return degrees.length ** 2 < 4 * n ? sphereKernel(points, degrees) : pairKernel(model, points);
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
  const series = kernelSeries(beta);
  const real = new Float64Array(series.length);
  const imaginary = new Float64Array(series.length);
  addMoments(points, real, imaginary);
  return series.reduce(
    (sum, weight, k) => sum + (k === 0 ? 1 : 2) * weight * (real[k]! ** 2 + imaginary[k]! ** 2),
    0,
  );
}

/** mean_ij P_l(<x_i,x_j>) = 4 pi/(2l+1) sum_m |mean Y_lm|^2, weighed by (2l+1) i_l. O(n L^2/2). */
function sphereKernel(points: Float64Array, degrees: Float64Array): number {
  const size = degrees.length;
  const real = new Float64Array(size * size);
  const imaginary = new Float64Array(size * size);
  new Harmonics(size - 1).addMoments(points, real, imaginary);
  let total = 0;
  for (let m = 0; m < size; m++)
    for (let l = m; l < size; l++) {
      const power = real[m * size + l]! ** 2 + imaginary[m * size + l]! ** 2;
      total += (m === 0 ? 1 : 2) * degrees[l]! * power; // m and -m
    }
  return 4 * Math.PI * total;
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
