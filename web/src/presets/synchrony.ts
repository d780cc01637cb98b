// 2405.18273, 2504.14697 and 2509.25040: who ends in one point, how fast, and through which phases.
import type { Preset } from "./types.ts";

const KERNELS = { arxiv: "2405.18273", name: "Synchronization on circles and spheres with nonlinear interactions" };
const QUANTITATIVE = { arxiv: "2504.14697", name: "Quantitative clustering in mean-field transformer models" };
const MULTISCALE = {
  arxiv: "2509.25040",
  name: "A multiscale analysis of mean-field transformers in the moderate interaction regime",
};

const PENTAGON = Array.from({ length: 5 }, (_, k) => {
  const angle = (2 * Math.PI * k) / 5;
  return [Number(Math.cos(angle).toFixed(8)), Number(Math.sin(angle).toFixed(8))];
});

export const SYNCHRONY: Preset[] = [
  {
    id: "pentagon",
    title: "A pentagon that cannot last",
    paper: KERNELS,
    speed: 2,
    colouring: "token",
    spec: {
      title: "pentagon",
      says: "Five tokens stand almost on a regular pentagon, where all pulls cancel; on the circle β ≤ 1 is enough to leave it: all are apart until t = 9, and in one place by t = 12.",
      model: { name: "USA", beta: 1, convention: "perspective" },
      tokens: { law: "points", d: 2, points: PENTAGON, normalise: true, perturb: 0.01, perturb_seed: 1 },
      solve: { t1: 16, method: "fixed", dt: 0.02, seed: 0 },
    },
  },
  {
    id: "one-point",
    title: "Exponentially fast to one point",
    paper: QUANTITATIVE,
    speed: 0.5,
    spec: {
      title: "one-point",
      says: "Tokens from half a sphere, at β = 0.1: the order parameter never falls, is above 0.97 at t = 2, and from t = 3 on its distance to one shrinks ninefold per unit of time.",
      model: { name: "USA", beta: 0.1, convention: "perspective" },
      tokens: { law: "hemisphere", d: 3, n: 256, seed: 1 },
      solve: { t1: 8, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "phases",
    title: "Three phases: collapse, clusters, pairs",
    paper: MULTISCALE,
    speed: 1,
    logTime: true,
    spec: {
      title: "phases",
      says: "V = diag(1, 1, -1/2) flattens the cloud onto a circle; by t = 6 the tokens are within 0.05 of it, in five groups, which then merge two at a time, at t = 7.8 and 27.",
      model: { name: "SA", beta: 16, weights: { V: [[1, 0, 0], [0, 1, 0], [0, 0, -0.5]] } },
      tokens: { law: "uniform", d: 3, n: 96, seed: 1 },
      solve: { t1: 40, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
];
