// What else a transformer has: layer norms, a perceptron, noise, and value matrices that are not the identity.
import type { PerceptronSpec } from "../spec/types.ts";
import type { Preset } from "./types.ts";

const NORMALISATION = { arxiv: "2510.22026", name: "Normalization in attention dynamics" };
const PERCEPTRON = { arxiv: "2601.21366", name: "Perceptrons and localization of attention's mean-field landscape" };
const SURVEY = { arxiv: "2512.01868", name: "The mean-field dynamics of transformers" };

/** A small gradient network that is strong enough to pin clusters: omega of size 1/2. */
export const RELU_PERCEPTRON: PerceptronSpec = { width: 8, seed: 6, scale: Math.SQRT2, gradient: true, activation: "relu" };

export const MECHANISMS: Preset[] = [
  {
    id: "post-ln",
    title: "Post-LN: the clock of the sphere",
    paper: NORMALISATION,
    speed: 1,
    spec: {
      title: "post-ln",
      says: "Layer norm after attention: two clusters are left at t = 8. Remember that time, and compare pre-LN from the same start.",
      model: { name: "SA", beta: 4, normalisation: { scheme: "post" } },
      tokens: { law: "uniform", d: 3, n: 64, seed: 2 },
      solve: { t1: 40, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "pre-ln",
    title: "Pre-LN: a clock that slows down",
    paper: NORMALISATION,
    speed: 1,
    spec: {
      title: "pre-ln",
      says: "The same start with layer norm before attention: radii grow like t, directions turn ever more slowly, and at t = 40 there are still ten clusters (post-LN: two at t = 8).",
      model: { name: "SA", beta: 4, normalisation: { scheme: "pre" } },
      tokens: { law: "uniform", d: 3, n: 64, seed: 2 },
      solve: { t1: 40, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "noise",
    title: "Noise against attention",
    paper: SURVEY,
    speed: 4,
    spec: {
      title: "noise",
      says: "Tokens align but keep jittering: the order parameter climbs above 0.8 by t = 15 and fluctuates there. Raise the noise above 0.8, the critical temperature, and the order dissolves.",
      model: { name: "USA", beta: 2, convention: "perspective", noise: { kind: "brownian", temperature: 0.4 } },
      tokens: { law: "uniform", d: 2, n: 128, seed: 7 },
      solve: { t1: 30, method: "fixed", dt: 0.01, seed: 7 },
    },
  },
  {
    id: "perceptron",
    title: "A perceptron gives the circle a landscape",
    paper: PERCEPTRON,
    speed: 1,
    spec: {
      title: "perceptron",
      says: "Two clusters, of 23 and 9 tokens, stand still from t = 8 on and never merge: the perceptron holds each in a place of its own.",
      model: { name: "SA", beta: 4, plus: RELU_PERCEPTRON },
      tokens: { law: "uniform", d: 2, n: 32, seed: 6 },
      solve: { t1: 40, method: "fixed", dt: 0.02, seed: 0 },
    },
  },
  {
    id: "perceptron-off",
    title: "The same without the perceptron",
    paper: PERCEPTRON,
    speed: 1,
    spec: {
      title: "perceptron-off",
      says: "Attention alone: three clusters, which drift until two of them merge at t = 33. Switch the perceptron on to see where it puts them.",
      model: { name: "SA", beta: 4 },
      tokens: { law: "uniform", d: 2, n: 32, seed: 6 },
      solve: { t1: 40, method: "fixed", dt: 0.02, seed: 0 },
    },
  },
  {
    id: "repulsive",
    title: "V = -I: tokens repel",
    paper: null,
    speed: 1,
    spec: {
      title: "repulsive",
      says: "Attention with V = -I pushes: 48 tokens from one cap spread over the whole sphere, and the order parameter falls below 0.05 by t = 20.",
      model: { name: "SA", beta: 9, weights: { V: -1 } },
      tokens: { law: "cap", d: 3, n: 48, radius: 0.5, seed: 10 },
      solve: { t1: 60, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
  {
    id: "random-values",
    title: "A random symmetric V",
    paper: null,
    speed: 0.5,
    spec: {
      title: "random-values",
      says: "A random symmetric V chooses an axis: by t = 2 the tokens stand in two groups, at opposite ends of its leading eigenvector.",
      model: { name: "SA", beta: 4, weights: { V: { law: "GOE", scale: 1 }, seed: 3 } },
      tokens: { law: "uniform", d: 3, n: 64, seed: 1 },
      solve: { t1: 10, method: "fixed", dt: 0.05, seed: 0 },
    },
  },
];
