// Around the uniform measure (tokenflock/theory/uniform.py and noise.py): the kernel e^{beta<x,y>}/beta acts on
// harmonics of degree k as a number c_k (Funk-Hecke), and degree-k perturbations grow at k(k+d-2)(c_k - temperature).
import { scaledBessel } from "../math/bessel.ts";

/** e^{-beta} c_k for k = 0..most on the circle (I_k/beta) or the sphere (i_k/beta); beta > 0. */
export function scaledEigenvalues(d: number, beta: number, most: number): Float64Array {
  return scaledBessel(most, beta, d === 3).map((value) => value / beta);
}

/** Degree of the fastest growing mode, the same for SA and USA (2410.23228). */
export function dominantMode(d: number, beta: number): number {
  if (beta === 0) return 1;
  const shift = d / 2 - 1;
  const most = Math.ceil(2 * Math.sqrt(2 * beta + shift ** 2)) + 8;
  const rates = scaledEigenvalues(d, beta, most).map((c, k) => k * (k + d - 2) * c);
  return rates.indexOf(Math.max(...rates));
}

/** Temperature below which the uniform measure loses stability: c_1 (USA, in its clock) or c_1/Z0 (SA). */
export function criticalTemperature(
  d: number,
  beta: number,
  softmax: boolean,
  speed: number,
): number {
  if (beta === 0) return 1 / d;
  const [zeroth, first] = scaledEigenvalues(d, beta, 1);
  return softmax ? first! / (beta * zeroth!) : speed * first!;
}

/** Energy Z0/(2 beta) of the uniform measure, the smallest possible (2312.10794, Prop. 3.4). */
export function uniformEnergy(d: number, beta: number): number {
  return (Math.exp(beta) * scaledEigenvalues(d, beta, 0)[0]!) / 2;
}
