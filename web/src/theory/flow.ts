// A scalar flow u' = -R(u) < 0 as a table of times: t(u) = int_u^{u0} du/R, inverted on demand.

// Gauss's rule with five points on [-1, 1].
export const NODES = [0, 0.5384693101056831, -0.5384693101056831, 0.906179845938664, -0.906179845938664];
export const WEIGHTS = [
  0.5688888888888889, 0.47862867049936647, 0.47862867049936647, 0.23692688505618908,
  0.23692688505618908,
];

/** The solution u(t) from u(0) = start, followed down to `end`, where it stays. */
export function descend(
  rate: (u: number) => number,
  start: number,
  end: number,
  panels = 1500,
): (t: number) => number {
  const width = (start - end) / panels;
  const times = new Float64Array(panels + 1);
  for (let k = 0; k < panels; k++)
    times[k + 1] = times[k]! + duration(rate, start - k * width, start - (k + 1) * width);
  return (t) => {
    if (!(t > 0)) return start;
    if (t >= times[panels]!) return end;
    const panel = lastBelow(times, t);
    const top = start - panel * width;
    return within(rate, top, top - width, t - times[panel]!);
  };
}

/** Time from `from` down to `to`, by five Gauss points. */
export function duration(rate: (u: number) => number, from: number, to: number): number {
  const half = (from - to) / 2;
  const middle = (from + to) / 2;
  return half * NODES.reduce((sum, node, k) => sum + WEIGHTS[k]! / rate(middle + half * node), 0);
}

/** Bisection inside one panel: where `wanted` time has passed since its top. */
function within(rate: (u: number) => number, top: number, bottom: number, wanted: number): number {
  let [low, high] = [bottom, top];
  for (let k = 0; k < 40; k++) {
    const middle = (low + high) / 2;
    if (duration(rate, top, middle) > wanted) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function lastBelow(times: Float64Array, t: number): number {
  let [low, high] = [0, times.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= t) low = middle;
    else high = middle;
  }
  return low;
}
