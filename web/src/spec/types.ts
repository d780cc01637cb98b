// The spec of a run, as `tokenflock run` reads it from TOML (tokenflock/lab/spec.py), restricted to what
// the page can simulate. The same object is the page's settings, its link, its TOML and what is sent to
// the engine, so there is one description of a run.

export type ModelName = "SA" | "USA" | "CausalSA" | "HardmaxFlow" | "RescaledSA";
export type Matrix = number[][];

/** A law of random matrices, drawn from the engine's own generator. */
export interface LawSpec {
  law: "Ginibre" | "GOE" | "Wigner";
  scale: number;
}

/** V (and B = Q^T K): a number times the identity, a matrix, or a law. */
export interface WeightsSpec {
  V?: number | Matrix | LawSpec;
  B?: Matrix | LawSpec;
  seed?: number;
}

export interface PerceptronSpec {
  width: number;
  seed: number;
  scale: number;
  gradient: boolean;
  activation: "relu" | "gelu";
}

export interface NormalisationSpec {
  scheme: "post" | "pre" | "mix" | "peri" | "ngpt" | "sqrt";
  tau?: number;
  alpha?: number;
}

export interface ModelSpec {
  name: ModelName;
  beta?: number; // absent for HardmaxFlow only
  convention?: "perspective" | "metastability"; // USA
  weights?: WeightsSpec;
  self_term?: boolean; // CausalSA
  slope?: number; // CausalSA: ALiBi
  normalisation?: NormalisationSpec; // SA, USA
  noise?: { kind: "brownian"; temperature: number }; // SA, USA
  plus?: PerceptronSpec; // SA, USA
}

interface Start {
  space?: "sphere" | "euclidean";
  d: 2 | 3;
  perturb?: number;
  perturb_seed?: number;
}
export type TokensSpec =
  | (Start & { law: "uniform"; n: number; seed: number })
  | (Start & { law: "hemisphere"; n: number; seed: number })
  | (Start & { law: "cap"; n: number; seed: number; radius: number; centre?: number[] })
  | (Start & { law: "gaussian"; n: number; seed: number; scale: number })
  | (Start & { law: "box"; n: number; seed: number; half_width: number })
  | (Start & { law: "arcs"; centres: number[]; per_cluster: number; width: number; seed: number })
  | (Start & { law: "mixture"; centres: number[][]; per_cluster: number; radius: number; seed: number })
  | (Start & { law: "equiangular"; n: number; correlation: number })
  | (Start & { law: "points"; points: number[][]; normalise?: boolean });

/** Fixed steps of the flow (dt), or a network of layers (step): the two things a browser can follow live. */
export type SolveSpec =
  | { t1: number; method: "fixed"; dt: number; seed: number }
  | { t1: number; method: "layers"; step: number; seed: number };

export interface Spec {
  title: string;
  says: string;
  model: ModelSpec;
  tokens: TokensSpec;
  solve: SolveSpec;
}
