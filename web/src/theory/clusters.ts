// Two point clusters of masses p and q at an angle phi (tokenflock/theory/clusters.py): y = log tan(phi/2)
// obeys y' = -R, with R = q/(pE + q) + p/(qE + p), E = e^{beta(1 - cos phi)}, for SA, and
// R = (p + q) e^{beta cos phi} for USA.
import type { Attraction } from "./equiangular.ts";
import { descend, duration } from "./flow.ts";

const SLICES = 2000;

function pull({ beta, softmax, speed }: Attraction, p: number, q: number): (y: number) => number {
  return (y) => {
    const contrast = beta * (2 / (1 + Math.exp(-2 * y)));
    if (!softmax) return (p + q) * speed * Math.exp(-contrast);
    const E = Math.exp(contrast);
    return q / (p * E + q) + p / (q * E + p);
  };
}

/** phi(t) from phi(0) = start in (0, pi). */
export function twoClusterAngle(
  attraction: Attraction,
  p: number,
  q: number,
  start: number,
): (t: number) => number {
  const first = Math.log(Math.tan(start / 2));
  const y = descend(pull(attraction, p, q), first, Math.min(first, 0) - 30);
  return (t) => 2 * Math.atan(Math.exp(y(t)));
}

/** Time to close from an angle to a smaller one. */
export function twoClusterLifetime(
  attraction: Attraction,
  p: number,
  q: number,
  from: number,
  to: number,
): number {
  const [top, bottom] = [Math.log(Math.tan(from / 2)), Math.log(Math.tan(to / 2))];
  const rate = pull(attraction, p, q);
  const width = (top - bottom) / SLICES;
  let total = 0;
  for (let k = 0; k < SLICES; k++) total += duration(rate, top - k * width, top - (k + 1) * width);
  return total;
}
