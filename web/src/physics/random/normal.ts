// Standard normal numbers as jax.random.normal draws them: sqrt(2) erfinv(u), u uniform in (-1, 1).
import { type Key, uniformAt } from "./threefry.ts";

// Phi^-1 by Wichura's algorithm AS 241 (PPND16, 1988): relative error about 1e-16 everywhere.
const CENTRE_TOP = [
  3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
  45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727,
];
const CENTRE_BOTTOM = [
  1, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077, 21213.794301586595867,
  39307.89580009271061, 28729.085735721942674, 5226.495278852854561,
];
const TAIL_TOP = [
  1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
  1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833, 7.7454501427834140764e-4,
];
const TAIL_BOTTOM = [
  1, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455, 0.14810397642748007459,
  0.0151986665636164571966, 5.475938084995344946e-4, 1.05075007164441684324e-9,
];
const FAR_TOP = [
  6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 0.29656057182850489123,
  0.026532189526576123093, 0.0012426609473880784386, 2.71155556874348757815e-5,
  2.01033439929228813265e-7,
];
const FAR_BOTTOM = [
  1, 0.59983220655588793769, 0.13692988092273580531, 0.0148753612908506148525,
  7.868691311456132591e-4, 1.8463183175100546818e-5, 1.4215117583164458887e-7,
  2.04426310338993978564e-15,
];

/** Smallest number above -1: JAX keeps u inside the open interval. */
const LOWEST = -(1 - 2 ** -53);

function polynomial(coefficients: readonly number[], x: number): number {
  let value = 0;
  for (let k = coefficients.length - 1; k >= 0; k--) value = value * x + coefficients[k]!;
  return value;
}

/** sqrt(2) erfinv(u) for -1 < u < 1: the normal quantile of (1 + u)/2, without rounding (1 + u)/2. */
export function normalQuantile(u: number): number {
  const half = u / 2;
  if (Math.abs(half) <= 0.425) {
    const r = 0.180625 - half * half;
    return (half * polynomial(CENTRE_TOP, r)) / polynomial(CENTRE_BOTTOM, r);
  }
  const r = Math.sqrt(-Math.log((1 - Math.abs(u)) / 2));
  const size =
    r <= 5
      ? polynomial(TAIL_TOP, r - 1.6) / polynomial(TAIL_BOTTOM, r - 1.6)
      : polynomial(FAR_TOP, r - 5) / polynomial(FAR_BOTTOM, r - 5);
  return u < 0 ? -size : size;
}

/** Fill `out` with jax.random.normal(key, (out.length,)). */
export function fillNormal(key: Key, out: Float64Array): Float64Array {
  for (let i = 0; i < out.length; i++) {
    out[i] = normalQuantile(Math.max(LOWEST, uniformAt(key, i) * (1 - LOWEST) + LOWEST));
  }
  return out;
}

/** jax.random.normal(key, shape) with `size` entries. */
export function normal(key: Key, size: number): Float64Array {
  return fillNormal(key, new Float64Array(size));
}
