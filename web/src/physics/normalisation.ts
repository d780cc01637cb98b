// Six places for layer norm as one law for directions and radii (tokenflock/normalisation.py, 2510.22026):
// x = r theta, theta' = P_theta G / r and r' = <theta, G> where the radius grows, theta' = P_theta G elsewhere.
import type { NormalisationSpec } from "../spec/types.ts";

export type Scheme = NormalisationSpec | undefined;

/** Whether radii are part of the state. */
export function movesRadii(scheme: Scheme): boolean {
  return scheme !== undefined && ["pre", "mix", "peri"].includes(scheme.scheme);
}

/** Whether only the tangent part of the attention output matters, so that V x_i may be dropped. */
export function tangentOnly(scheme: Scheme): boolean {
  return scheme === undefined || scheme.scheme === "post" || scheme.scheme === "sqrt";
}

/** Whether the radius grows at time t (pre-LN) instead of being reset (post-LN). */
export function growsAt(scheme: Scheme, t: number): boolean {
  if (scheme?.scheme === "mix") return t > scheme.tau!;
  return scheme?.scheme === "pre" || scheme?.scheme === "peri";
}

/** Turn the raw output A of every token into the vector G that is added to it, in place. */
export function shapeUpdate(scheme: Scheme, t: number, force: Float64Array, d: number): void {
  const whole = scheme?.scheme === "sqrt" ? 1 / Math.sqrt(1 + t) : scheme?.alpha ?? 1;
  const normalises = scheme?.scheme === "peri" || scheme?.scheme === "ngpt";
  if (!normalises && whole === 1) return;
  for (let start = 0; start < force.length; start += d) {
    const scale = whole * (normalises ? inverseLength(force, start, d) : 1);
    for (let k = start; k < start + d; k++) force[k]! *= scale;
  }
}

function inverseLength(rows: Float64Array, start: number, d: number): number {
  let squared = 0;
  for (let k = start; k < start + d; k++) squared += rows[k]! * rows[k]!;
  return squared === 0 ? 0 : 1 / Math.sqrt(squared);
}
