// 2411.04990: under a causal mask early tokens lead.
import type { Preset } from "./types.ts";

export const CAUSAL: Preset[] = [
  {
    id: "causal",
    title: "Causal leaders",
    paper: { arxiv: "2411.04990", name: "Clustering in causal attention masking" },
    speed: 4,
    colouring: "token",
    spec: {
      title: "causal",
      says: "Colours tell the order: the first token never moves, early tokens far from all others hold their place, and later ones gather around them; seven clusters remain at t = 100.",
      model: { name: "CausalSA", beta: 64 },
      tokens: { law: "uniform", d: 2, n: 64, seed: 3 },
      solve: { t1: 100, method: "fixed", dt: 0.02, seed: 0 },
    },
  },
];
