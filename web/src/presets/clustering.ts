// 2312.10794 (a mathematical perspective on transformers): tokens cluster; beta decides how, and when.
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
      says: "Scattered tokens gather into a few tight groups within seconds; then the groups hardly move, and only slowly merge.",
      model: { name: "SA", beta: 9 },
      tokens: { law: "uniform", d: 3, n: 64, seed: 0 },
      solve: { t1: 30, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
];
