// 2312.10794: tokens cluster; beta decides into how many groups, and how long that lasts.
import type { Preset } from "./types.ts";

const PAPER = { arxiv: "2312.10794", name: "A mathematical perspective on transformers" };

export const CLUSTERING: Preset[] = [
  {
    id: "sphere",
    title: "Tokens flock on the sphere",
    paper: PAPER,
    speed: 1,
    spec: {
      title: "sphere",
      says: "64 scattered tokens gather into six tight groups by t = 6; then they seem to rest, but the count still falls, to four at t = 12 and three at t = 40.",
      model: { name: "SA", beta: 9 },
      tokens: { law: "uniform", d: 3, n: 64, seed: 0 },
      solve: { t1: 60, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "warm",
    title: "Warm attention: one cluster",
    paper: PAPER,
    speed: 1,
    spec: {
      title: "warm",
      says: "At β = 1 everybody hears everybody: all 64 tokens are in one place by t = 7. Restart with β = 20, and a dozen groups remain.",
      model: { name: "SA", beta: 1 },
      tokens: { law: "uniform", d: 3, n: 64, seed: 0 },
      solve: { t1: 20, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "circle",
    title: "Steps on the circle",
    paper: PAPER,
    speed: 1,
    spec: {
      title: "circle",
      says: "32 tokens on the circle: the number of clusters falls in steps, three at t = 7 and two at t = 12; that last pair waits until t = 336.",
      model: { name: "SA", beta: 4 },
      tokens: { law: "uniform", d: 2, n: 32, seed: 1 },
      solve: { t1: 40, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "modes",
    title: "As many clusters as the fastest wave",
    paper: { arxiv: "2410.23228", name: "Emergence of meta-stable clustering in mean-field transformer models" },
    speed: 1,
    spec: {
      title: "modes",
      says: "256 tokens begin evenly spread; around that start the wave with four crests grows fastest at β = 9, and by t = 10 there are four clusters.",
      model: { name: "SA", beta: 9 },
      tokens: { law: "uniform", d: 2, n: 256, seed: 3 },
      solve: { t1: 20, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
];
