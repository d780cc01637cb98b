// The starts one can choose from, made from the one that is there.
import { LIMITS } from "../../spec/bounds.ts";
import { dimension, spaceOf, tokenCount } from "../../spec/size.ts";
import type { ModelName, Spec, TokensSpec } from "../../spec/types.ts";

export type Law = TokensSpec["law"];

const NAMES: Record<Law, string> = {
  uniform: "uniform",
  hemisphere: "hemisphere",
  cap: "cap (close together)",
  arcs: "arcs (groups)",
  mixture: "groups",
  equiangular: "equal angles",
  gaussian: "Gaussian",
  box: "box",
  points: "given tokens",
};
const GOLDEN = (1 + Math.sqrt(5)) / 2;

/** Laws that fit the model and the dimension; the present one always. */
export function lawsFor(spec: Spec): (readonly [Law, string])[] {
  const sphere: Law[] = ["uniform", "hemisphere", "cap", dimension(spec) === 2 ? "arcs" : "mixture", "equiangular"];
  const flat: Law[] = ["box", "gaussian"];
  const laws = spec.model.name === "RescaledSA" ? flat : spec.model.name === "HardmaxFlow" ? [...flat, ...sphere] : sphere;
  const present = spec.tokens.law;
  return [...laws, ...(laws.includes(present) ? [] : [present])].map((law) => [law, NAMES[law]] as const);
}

/** A start of another law with as many tokens; on R^d where the model lives there. */
export function startOf(spec: Spec, law: Law): TokensSpec {
  const d = dimension(spec);
  const n = tokenCount(spec);
  const seed = "seed" in spec.tokens ? spec.tokens.seed : LIMITS.seed.default;
  switch (law) {
    case "uniform":
    case "hemisphere":
      return { law, d, n, seed };
    case "cap":
      return { law, d, n, seed, radius: LIMITS.radius.default };
    case "arcs":
    case "mixture":
      return grouped(spec, 2);
    case "equiangular":
      return { law, d, n: Math.min(n, d), correlation: LIMITS.correlation.default };
    case "gaussian":
      return { law, d, n, seed, scale: LIMITS.gaussianScale.default, ...place(spec.model.name) };
    case "box":
      return { law, d, n, seed, half_width: LIMITS.halfWidth.default };
    case "points":
      return spec.tokens;
  }
}

/** Groups of tokens, evenly spread apart: arcs on the circle, caps on the sphere. */
export function grouped(spec: Spec, groups: number, width: number = LIMITS.arcWidth.default): TokensSpec {
  const seed = "seed" in spec.tokens ? spec.tokens.seed : LIMITS.seed.default;
  const per_cluster = Math.max(1, Math.min(Math.floor(LIMITS.n.max / groups), Math.round(tokenCount(spec) / groups)));
  if (dimension(spec) === 2) return { law: "arcs", d: 2, centres: angles(groups), per_cluster, width, seed };
  const radius = Math.max(width, LIMITS.radius.min);
  return { law: "mixture", d: 3, centres: directions(groups), per_cluster, radius, seed };
}

/** Two arcs stand 2 radians apart, since opposite ones would rest on a saddle; more are spread evenly. */
function angles(groups: number): number[] {
  const gap = groups === 2 ? 2 : (2 * Math.PI) / groups;
  return Array.from({ length: groups }, (_, k) => Number((k * gap).toFixed(4)));
}

/** Fibonacci's lattice on the sphere. */
function directions(groups: number): number[][] {
  return Array.from({ length: groups }, (_, k) => {
    const z = 1 - (2 * k + 1) / groups;
    const turn = (2 * Math.PI * k) / GOLDEN;
    const across = Math.sqrt(1 - z * z);
    return [across * Math.cos(turn), across * Math.sin(turn), z].map((entry) => Number(entry.toFixed(4)));
  });
}

function place(name: ModelName): { space?: "euclidean" } {
  return name === "RescaledSA" || name === "HardmaxFlow" ? { space: "euclidean" } : {};
}

/** "on the sphere", for sentences. */
export function placeName(spec: Spec): string {
  if (spaceOf(spec) === "euclidean") return dimension(spec) === 2 ? "in the plane" : "in space";
  return dimension(spec) === 2 ? "on the circle" : "on the sphere";
}
