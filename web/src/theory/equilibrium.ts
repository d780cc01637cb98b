// The stationary order |mean x| of noisy USA for many tokens: density ~ exp((W * density)/T) with
// W = speed e^{beta(<x,y>-1)}/beta (Gibbs form of the gradient flow with noise, 2512.01868); at beta = 0 the noisy
// Kuramoto model, r = A_d(r/T).
import { NODES, WEIGHTS } from "./flow.ts";
import { scaledEigenvalues } from "./uniform.ts";

const PANELS = 40;
const ROUNDS = 1000;
const SETTLED = 1e-10;

/** The order of the clustered state that a cold start leads to; 0 where only the uniform state remains. */
export function equilibriumOrder(d: number, beta: number, speed: number, temperature: number): number {
  const strengths = couplings(d, beta, speed).map((c) => c / temperature);
  const places = latitudes(d, strengths.length);
  // Start from one tight cluster: of several stationary states this finds the most ordered one.
  let moments = strengths.map(() => 1);
  for (let round = 0; round < ROUNDS; round++) {
    const next = momentsOf(places, strengths.map((c, k) => c * moments[k]!));
    const change = Math.abs(next[1]! - moments[1]!);
    moments = next;
    if (change < SETTLED) break;
  }
  return moments[1]! < 1e-4 ? 0 : moments[1]!;
}

/** c_k times what a zonal density makes of it: 2 c_k cos(k .) on the circle, (2k+1) c_k P_k on the sphere. */
function couplings(d: number, beta: number, speed: number): number[] {
  if (beta === 0) return [0, 1];
  const scaled = scaledEigenvalues(d, beta, Math.ceil(12 + 8 * Math.sqrt(beta)));
  return Array.from(scaled, (c, k) => (k === 0 ? 0 : speed * c * (d === 3 ? 2 * k + 1 : 2)));
}

interface Latitude {
  weight: number;
  harmonics: number[]; // cos(k angle) or P_k(cos angle)
}

/** Gauss points of the angle from the axis (circle) or of its cosine (sphere). */
function latitudes(d: number, count: number): Latitude[] {
  const half = (d === 3 ? 2 : Math.PI) / PANELS / 2;
  return Array.from({ length: PANELS }, (_, panel) => (2 * panel + 1) * half).flatMap((middle) =>
    NODES.map((node, k) => {
      const place = middle + half * node;
      return { weight: WEIGHTS[k]!, harmonics: zonal(d, d === 3 ? place - 1 : Math.cos(place), count) };
    }),
  );
}

/** Means of the zonal harmonics under the density exp(sum_k a_k Y_k). */
function momentsOf(places: Latitude[], a: number[]): number[] {
  const exponents = places.map(({ harmonics }) => harmonics.reduce((sum, y, k) => sum + a[k]! * y, 0));
  const peak = exponents.reduce((most, e) => Math.max(most, e), -Infinity);
  const moments = a.map(() => 0);
  places.forEach(({ weight, harmonics }, i) => {
    const mass = weight * Math.exp(exponents[i]! - peak);
    for (let k = 0; k < moments.length; k++) moments[k]! += mass * harmonics[k]!;
  });
  return moments.map((moment) => moment / moments[0]!);
}

/** cos(k angle) on the circle, P_k on the sphere, from u = cos(angle). */
function zonal(d: number, u: number, count: number): number[] {
  const values = [1, u];
  for (let k = 1; k + 1 < count; k++) {
    const [before, here] = [values[k - 1]!, values[k]!];
    values.push(d === 3 ? ((2 * k + 1) * u * here - k * before) / (k + 1) : 2 * u * here - before);
  }
  return values;
}
