// Tokens with one common inner product gamma (tokenflock/theory/equiangular.py; 2312.10794, eq. (6.9), (6.10)):
// with w = (1 - gamma)/((n-1) gamma + 1), d log w/dt = -2n/(e^{beta(1-gamma)} + n - 1) for SA and
// -2 e^{beta gamma} for USA.
import { descend } from "./flow.ts";

export interface Attraction {
  beta: number;
  softmax: boolean; // SA, or USA
  speed: number; // of USA: e^beta in the perspective clock, 1 in that of metastability
}

/** gamma(t) from gamma(0) = start in (-1/(n-1), 1). */
export function equiangular(
  { beta, softmax, speed }: Attraction,
  n: number,
  start: number,
): (t: number) => number {
  const gap = (logW: number): number => n / (Math.exp(-logW) + n - 1);
  const rate = (logW: number): number => {
    const far = beta * gap(logW);
    return softmax ? (2 * n) / (Math.exp(far) + n - 1) : 2 * speed * Math.exp(-far);
  };
  const first = Math.log((1 - start) / ((n - 1) * start + 1));
  const logW = descend(rate, first, Math.min(first, 0) - 40);
  return (t) => 1 - gap(logW(t));
}
