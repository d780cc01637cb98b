// The tokens a run starts from: tokenflock/measure.py's laws, with the engine's own random numbers.
import type { Frame } from "../app/contract.ts";
import { dimension, spaceOf, tokenCount } from "../spec/size.ts";
import type { Spec, TokensSpec } from "../spec/types.ts";
import { flatten, normaliseRows } from "./linear.ts";
import { movesRadii } from "./normalisation.ts";
import { normal } from "./random/normal.ts";
import { type Key, keyOf, split, uniform } from "./random/threefry.ts";

/** The state at t = 0: points, and radii where the normalisation scheme moves them. */
export function startTokens(spec: Spec): Frame {
  const { points, radii } = drawn(spec.tokens, spaceOf(spec) === "sphere");
  const { perturb, perturb_seed } = spec.tokens;
  if (perturb !== undefined) {
    const kick = normal(keyOf(perturb_seed ?? 0), points.length);
    for (let i = 0; i < points.length; i++) points[i]! += perturb * kick[i]!;
    if (spaceOf(spec) === "sphere") normaliseRows(points, dimension(spec));
  }
  return { time: 0, points, radii: hasRadii(spec) ? (radii ?? ones(tokenCount(spec))) : null };
}

/** Whether radii are part of the state. */
export function hasRadii(spec: Spec): boolean {
  return spaceOf(spec) === "sphere" && movesRadii(spec.model.normalisation);
}

export function ones(n: number): Float64Array {
  return new Float64Array(n).fill(1);
}

interface Drawn {
  points: Float64Array;
  radii: Float64Array | null;
}

function drawn(tokens: TokensSpec, sphere: boolean): Drawn {
  if (tokens.law === "gaussian") return gaussian(tokens.n, tokens.d, tokens.seed, tokens.scale, sphere);
  return { points: pointsOf(tokens), radii: null };
}

function pointsOf(tokens: Exclude<TokensSpec, { law: "gaussian" }>): Float64Array {
  const d = tokens.d;
  switch (tokens.law) {
    case "uniform":
      return onSphere(keyOf(tokens.seed), tokens.n, d);
    case "hemisphere":
      return flipped(onSphere(keyOf(tokens.seed), tokens.n, d), d);
    case "cap":
      return around(keyOf(tokens.seed), axisOf(tokens.centre, d), tokens.radius, tokens.n);
    case "box":
      return uniform(keyOf(tokens.seed), tokens.n * d, -tokens.half_width, tokens.half_width);
    case "arcs":
      return arcs(tokens.centres, tokens.per_cluster, tokens.width, tokens.seed);
    case "mixture":
      return mixture(tokens.centres, tokens.per_cluster, tokens.radius, tokens.seed);
    case "equiangular":
      return equiangular(tokens.n, d, tokens.correlation);
    case "points": {
      const points = flatten(tokens.points);
      const retracts = (tokens.normalise ?? false) && tokens.space !== "euclidean";
      return retracts ? normaliseRows(points, d) : points;
    }
  }
}

function gaussian(n: number, d: number, seed: number, scale: number, sphere: boolean): Drawn {
  const points = normal(keyOf(seed), n * d).map((entry) => scale * entry);
  if (!sphere) return { points, radii: null };
  const radii = Float64Array.from({ length: n }, (_, i) =>
    Math.hypot(...points.subarray(i * d, (i + 1) * d)),
  );
  return { points: normaliseRows(points, d), radii };
}

function onSphere(key: Key, n: number, d: number): Float64Array {
  return normaliseRows(normal(key, n * d), d);
}

/** Tokens with a negative first coordinate change sign. */
function flipped(points: Float64Array, d: number): Float64Array {
  for (let start = 0; start < points.length; start += d) {
    if (points[start]! >= 0) continue;
    for (let k = start; k < start + d; k++) points[k] = -points[k]!;
  }
  return points;
}

function axisOf(centre: readonly number[] | undefined, d: number): Float64Array {
  const first = Float64Array.from({ length: d }, (_, k) => (k === 0 ? 1 : 0));
  return centre === undefined ? first : normaliseRows(Float64Array.from(centre), d);
}

/** Angle uniform in [0, radius] from the axis, direction isotropic. */
function around(key: Key, axis: Float64Array, radius: number, n: number): Float64Array {
  const d = axis.length;
  const [turn, direction] = split(key);
  const tangent = onSphere(direction!, n, d);
  for (let start = 0; start < tangent.length; start += d) {
    let along = 0;
    for (let k = 0; k < d; k++) along += axis[k]! * tangent[start + k]!;
    for (let k = 0; k < d; k++) tangent[start + k]! -= along * axis[k]!;
  }
  normaliseRows(tangent, d);
  const theta = uniform(turn!, n);
  return tangent.map((entry, index) => {
    const angle = radius * theta[Math.floor(index / d)]!;
    return Math.cos(angle) * axis[index % d]! + Math.sin(angle) * entry;
  });
}

function mixture(centres: number[][], count: number, radius: number, seed: number): Float64Array {
  const keys = split(keyOf(seed), centres.length);
  const groups = centres.map((centre, index) =>
    around(keys[index]!, normaliseRows(Float64Array.from(centre), centre.length), radius, count),
  );
  return Float64Array.from(groups.flatMap((group) => [...group]));
}

function arcs(centres: number[], count: number, width: number, seed: number): Float64Array {
  const noise = normal(keyOf(seed), centres.length * count);
  const points = new Float64Array(2 * noise.length);
  noise.forEach((kick, i) => {
    const angle = centres[Math.floor(i / count)]! + width * kick;
    points[2 * i] = Math.cos(angle);
    points[2 * i + 1] = Math.sin(angle);
  });
  return points;
}

/** Rows of the Cholesky factor of (1 - rho) I + rho 11^T. */
function equiangular(n: number, d: number, correlation: number): Float64Array {
  const rows = new Float64Array(n * d);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let rest = i === j ? 1 : correlation;
      for (let k = 0; k < j; k++) rest -= rows[i * d + k]! * rows[j * d + k]!;
      rows[i * d + j] = i === j ? Math.sqrt(rest) : rest / rows[j * d + j]!;
    }
  }
  return normaliseRows(rows, d);
}
