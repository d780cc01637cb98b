// The perceptron w sigma(a x + b) of tokenflock/terms/perceptron.py (2312.10794, eq. (2.8)).
import { dimension } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { normaliseRows } from "./linear.ts";
import { normal } from "./random/normal.ts";
import { keyOf, split } from "./random/threefry.ts";

export interface Perceptron {
  width: number;
  d: number;
  inner: Float64Array; // (width, d)
  outer: Float64Array; // (d, width)
  bias: Float64Array; // (width)
  omega: Float64Array | null; // (width), of a gradient-structured one (2601.21366)
  activation: "relu" | "gelu";
}

/** The engine's random perceptron of a spec, or null. */
export function drawPerceptron(spec: Spec): Perceptron | null {
  const given = spec.model.plus;
  if (given === undefined) return null;
  const d = dimension(spec);
  const { width, activation } = given;
  const size = given.scale / Math.sqrt(width); // the same speed for every width
  const [first, second] = split(keyOf(given.seed), 3);
  const inner = normaliseRows(normal(first!, width * d), d);
  if (!given.gradient) {
    const outer = normal(second!, d * width).map((entry) => size * entry);
    return { width, d, inner, outer, bias: new Float64Array(width), omega: null, activation };
  }
  const omega = normal(second!, width).map((entry) => size * entry);
  const outer = new Float64Array(d * width);
  for (let k = 0; k < d; k++)
    for (let j = 0; j < width; j++) outer[k * width + j] = omega[j]! * inner[j * d + k]!;
  return { width, d, inner, outer, bias: new Float64Array(width), omega, activation };
}

/** Add w sigma(a x + b) of every row of x to `out`. */
export function addPerceptron(layer: Perceptron, x: Float64Array, out: Float64Array): void {
  const { width, d, inner, outer, bias } = layer;
  const sigma = layer.activation === "relu" ? relu : gelu;
  for (let start = 0; start < x.length; start += d) {
    for (let j = 0; j < width; j++) {
      let s = bias[j]!;
      for (let k = 0; k < d; k++) s += inner[j * d + k]! * x[start + k]!;
      const value = sigma(s);
      if (value === 0) continue;
      for (let k = 0; k < d; k++) out[start + k]! += outer[k * width + j]! * value;
    }
  }
}

/** Mean over tokens of v(x) = sum_j omega_j phi(a_j . x), phi' = 2 sigma. */
export function meanPotential(layer: Perceptron, x: Float64Array): number {
  const { width, d, inner, omega } = layer;
  if (omega === null) return 0;
  const primitive = layer.activation === "relu" ? reluPrimitive : geluPrimitive;
  let total = 0;
  for (let start = 0; start < x.length; start += d) {
    for (let j = 0; j < width; j++) {
      let s = 0;
      for (let k = 0; k < d; k++) s += inner[j * d + k]! * x[start + k]!;
      total += omega[j]! * primitive(s);
    }
  }
  return (total * d) / x.length;
}

const relu = (s: number): number => (s > 0 ? s : 0);
const gelu = (s: number): number => s * normalCdf(s);
const reluPrimitive = (s: number): number => relu(s) ** 2;
const geluPrimitive = (s: number): number => (s * s - 1) * normalCdf(s) + s * normalPdf(s);

function normalPdf(s: number): number {
  return Math.exp((-s * s) / 2) / Math.sqrt(2 * Math.PI);
}

/** Phi(s) by its Taylor series near 0 and its continued fraction in the tails, to about 1e-15. */
export function normalCdf(s: number): number {
  if (Math.abs(s) > 38) return s > 0 ? 1 : 0;
  return Math.abs(s) < 3 ? 0.5 + centralArea(s) : s > 0 ? 1 - tailArea(s) : tailArea(-s);
}

/** int_0^s pdf = pdf(s) (s + s^3/3 + s^5/15 + ...), all terms of one sign. */
function centralArea(s: number): number {
  let term = s;
  let total = s;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(total); k += 2) {
    term *= (s * s) / k;
    total += term;
  }
  return total * normalPdf(s);
}

/** int_s^inf pdf = pdf(s)/(s + 1/(s + 2/(s + ...))) for s >= 3. */
function tailArea(s: number): number {
  let denominator = s;
  for (let k = 60; k >= 1; k--) denominator = s + k / denominator;
  return normalPdf(s) / denominator;
}
