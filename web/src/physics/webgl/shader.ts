// The sums over tokens as a fragment shader: one texel per query, all keys in its loop.
import type { Model } from "../model.ts";

/** Keys per row of a texture. Each row is summed apart, which keeps the rounding of long sums small. */
export const ROW = 64;

export const VERTEX = `#version 300 es
void main() {
  // One triangle that covers the target.
  vec2 corner = vec2(float((gl_VertexID & 1) << 2), float((gl_VertexID & 2) << 1));
  gl_Position = vec4(corner - 1.0, 0.0, 1.0);
}`;

/** Which of the three ways of weighing a model needs. */
export type Variant = "shifted" | "peaked" | "argmax";

/** Rows that see themselves among unit keys know their largest score; others look for it first. */
export function variantOf(model: Model): Variant {
  if (model.kind === "hardmax") return "argmax";
  const own = model.weights.B === null && model.space === "sphere";
  return own && (!model.causal || model.selfTerm) ? "shifted" : "peaked";
}

/**
 * Result: sum_j k_ij (x_j - x_i) and, in w, sum_j k_ij. Tokens are float64 in two float32 pieces, so that
 * differences keep their digits where tokens have met, and slow motion between clusters is not lost:
 * <x,y> - 1 = -|x - y|^2/2 on the sphere.
 */
export function fragment(variant: Variant): string {
  return `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
uniform sampler2D high, low, queries;
uniform int count, causal, selfTerm, exponential;
uniform float beta, tilt;
out vec4 result;

vec3 differ(ivec2 key, vec3 ownHigh, vec3 ownLow) {
  return (texelFetch(high, key, 0).xyz - ownHigh) + (texelFetch(low, key, 0).xyz - ownLow);
}

void main() {
  ivec2 place = ivec2(gl_FragCoord.xy);
  int own = place.y * ${ROW} + place.x;
  int seen = causal == 1 ? own + selfTerm : count;
  if (own >= count) seen = 0;
  vec3 ownHigh = texelFetch(high, place, 0).xyz;
  vec3 ownLow = texelFetch(low, place, 0).xyz;
  vec3 query = texelFetch(queries, place, 0).xyz;
  ${BODIES[variant]}
}`;
}

/** A loop over the keys, row by row: `each` runs for every key at `key` with index `j`, `after` for every row. */
function overKeys(before: string, each: string, after: string): string {
  return `
  for (int first = 0; first < seen; first += ${ROW}) {
    ${before}
    int last = min(seen - first, ${ROW});
    for (int column = 0; column < last; column++) {
      int j = first + column;
      ivec2 key = ivec2(column, first / ${ROW});
      ${each}
    }
    ${after}
  }`;
}

const SUM_ROW = ["vec4 part = vec4(0.0);", "total += part;"] as const;
const SCORE = "float score = dot(query, texelFetch(high, key, 0).xyz) - tilt * float(own - j);";

const BODIES: Record<Variant, string> = {
  shifted: `
  vec4 total = vec4(0.0);
  ${overKeys(
    SUM_ROW[0],
    `vec3 apart = differ(key, ownHigh, ownLow);
      float weight = exp(-0.5 * beta * dot(apart, apart) - tilt * float(own - j));
      part += weight * vec4(apart, 1.0);`,
    SUM_ROW[1],
  )}
  result = total;`,
  peaked: `
  float peak = -3.0e38;
  ${overKeys("", `${SCORE} peak = max(peak, score);`, "")}
  // Unnormalised weights are e^(score - beta) themselves: no shift of their own.
  if (exponential == 1) peak = beta;
  vec4 total = vec4(0.0);
  ${overKeys(
    SUM_ROW[0],
    `${SCORE}
      part += exp(score - peak) * vec4(differ(key, ownHigh, ownLow), 1.0);`,
    SUM_ROW[1],
  )}
  result = total;`,
  argmax: `
  float peak = -3.0e38;
  vec4 total = vec4(0.0);
  ${overKeys(
    "",
    `${SCORE}
      if (score > peak) { peak = score; total = vec4(0.0); }
      if (score == peak) total += vec4(differ(key, ownHigh, ownLow), 1.0);`,
    "",
  )}
  result = total;`,
};
