// A spec's model with its matrices drawn: everything the velocity needs, and nothing about steps.
import { dimension, type SpaceName, spaceOf, tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { tangentOnly, type Scheme } from "./normalisation.ts";
import { drawPerceptron, type Perceptron } from "./perceptron.ts";
import { drawWeights, type Weights } from "./weights.ts";

/** How scores become weights: softmax, e^s/n without the partition function, or the mean over the argmax. */
export type Kind = "softmax" | "exponential" | "hardmax";

export interface Model {
  n: number;
  d: number;
  space: SpaceName;
  kind: Kind;
  beta: number;
  speed: number; // factor of the whole attention term
  weights: Weights;
  causal: boolean;
  selfTerm: boolean; // whether a causal token sees itself
  slope: number; // ALiBi: bias -slope (i - j)/n
  drift: number; // adds drift * x
  rescaled: boolean; // z = e^{-tV} x on R^d (2305.05465)
  perceptron: Perceptron | null;
  scheme: Scheme;
  temperature: number | null; // of Brownian noise sqrt(2 T) dB; null without noise
  dropSelf: boolean; // V x_i is a multiple of x_i, which the projection removes
}

/** The model of a spec. */
export function modelOf(spec: Spec): Model {
  const given = spec.model;
  const weights = drawWeights(spec);
  const space = spaceOf(spec);
  const beta = given.beta ?? 1;
  const scalar = typeof weights.V === "number";
  return {
    n: tokenCount(spec),
    d: dimension(spec),
    space,
    kind: KINDS[given.name],
    beta,
    speed: speedOf(spec),
    weights,
    causal: given.name === "CausalSA",
    selfTerm: given.self_term ?? true,
    slope: given.slope ?? 0,
    drift: given.name === "HardmaxFlow" ? -1 : 0,
    rescaled: given.name === "RescaledSA",
    perceptron: drawPerceptron(spec),
    scheme: given.normalisation,
    temperature: given.noise?.temperature ?? null,
    dropSelf: space === "sphere" && scalar && tangentOnly(given.normalisation),
  };
}

const KINDS = {
  SA: "softmax",
  CausalSA: "softmax",
  RescaledSA: "softmax",
  USA: "exponential",
  HardmaxFlow: "hardmax",
} as const satisfies Record<string, Kind>;

/**
 * The sums hold e^{beta(<x,y> - 1)}, so that nothing overflows; the "perspective" clock of USA
 * (2312.10794) runs e^beta times faster than the "metastability" clock (2410.06833).
 */
export function speedOf(spec: Spec): number {
  const { name, beta, convention } = spec.model;
  const fast = name === "USA" && (convention ?? "perspective") === "perspective";
  return fast ? Math.exp(beta ?? 1) : 1;
}
