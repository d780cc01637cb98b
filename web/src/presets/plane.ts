// 2305.05465 and 2407.01602: attention without layer norm, where tokens live in the plane.
import type { Preset } from "./types.ts";

const EMERGENCE = { arxiv: "2305.05465", name: "The emergence of clusters in self-attention dynamics" };
const HARDMAX = { arxiv: "2407.01602", name: "Clustering in pure-attention hardmax transformers" };

// Figure 2 of the hardmax paper.
const EIGHT = [
  [1, 1 / 3],
  [-1 / 12, 1 / 12],
  [-1, -1],
  [0, 0.25],
  [-0.3, -0.7],
  [-0.6, -0.9],
  [0.8, 0.1],
  [0.6, 0.15],
];

export const PLANE: Preset[] = [
  {
    id: "polytope",
    title: "Tokens run to the corners of a polygon",
    paper: EMERGENCE,
    speed: 0.5,
    spec: {
      title: "polytope",
      says: "Without layer norm, in the rescaled frame: the hull of the 20 tokens shrinks a little and stops, and by t = 4 they sit at five corners of it.",
      model: { name: "RescaledSA", beta: 1 },
      tokens: { law: "box", d: 2, n: 20, half_width: 5, seed: 9 },
      solve: { t1: 5, method: "fixed", dt: 0.02, seed: 0 },
    },
  },
  {
    id: "lines",
    title: "Tokens line up on parallel lines",
    paper: EMERGENCE,
    speed: 0.5,
    spec: {
      title: "lines",
      says: "V = diag(1, -1/2) pulls along one axis only: the 40 tokens settle on two upright lines, near 1.7 and -1.9, and spread along them.",
      model: { name: "RescaledSA", beta: 1, weights: { V: [[1, 0], [0, -0.5]] } },
      tokens: { law: "box", d: 2, n: 40, half_width: 2, seed: 9 },
      solve: { t1: 5, method: "fixed", dt: 0.02, seed: 0 },
    },
  },
  {
    id: "hardmax",
    title: "Hardmax: everybody follows a leader",
    paper: HARDMAX,
    speed: 1,
    spec: {
      title: "hardmax",
      says: "Every token follows the one that reaches farthest in its own direction: by t = 4 all 64 are near five leaders, tokens that have not moved at all.",
      model: { name: "HardmaxFlow" },
      tokens: { law: "gaussian", space: "euclidean", d: 2, n: 64, seed: 4, scale: 1 },
      solve: { t1: 10, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "leader",
    title: "A leader that is born on the way",
    paper: HARDMAX,
    speed: 0.1,
    colouring: "token",
    spec: {
      title: "leader",
      says: "Layer by layer, two corners lead from the start; once its neighbour has gone, the token near the middle becomes a third leader and stays there alone.",
      model: { name: "HardmaxFlow" },
      tokens: { law: "points", space: "euclidean", d: 2, points: EIGHT },
      solve: { t1: 10, method: "layers", step: 1 / 3, seed: 0 },
    },
  },
];
