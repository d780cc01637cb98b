// 2410.06833: clusters that stand still for a time exponential in beta, and then merge at once.
import type { Preset } from "./types.ts";

const PAPER = { arxiv: "2410.06833", name: "Dynamic metastability in the self-attention model" };

// The start of the authors' figure of five tokens.
const FIVE = [
  [0.99806638, 0.06215705],
  [0.97712061, 0.21268594],
  [-0.24578194, 0.96932515],
  [-0.97354734, 0.2284854],
  [-0.99892629, -0.04632772],
];

export const METASTABILITY: Preset[] = [
  {
    id: "metastability",
    title: "Metastability: two groups that wait",
    paper: PAPER,
    speed: 5,
    logTime: true,
    spec: {
      title: "metastability",
      says: "Two groups form within t = 5 and then seem frozen, until they run together near t = 189; with β = 6 the wait is almost four times as long.",
      model: { name: "SA", beta: 5 },
      tokens: { law: "arcs", d: 2, centres: [0, 2], per_cluster: 16, width: 0.5, seed: 11 },
      solve: { t1: 250, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "staircase",
    title: "Five tokens climb a staircase",
    paper: PAPER,
    speed: 5,
    colouring: "token",
    logTime: true,
    spec: {
      title: "staircase",
      says: "Five tokens merge one pair at a time, at t = 0.5, 1.4, 4.4 and 328: every plateau of the energy is longer than all before it together.",
      model: { name: "SA", beta: 4 },
      tokens: { law: "points", d: 2, points: FIVE, normalise: true },
      solve: { t1: 400, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
];
