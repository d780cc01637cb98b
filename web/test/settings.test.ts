// Starts to choose from, side effects in words, and specs that come from elsewhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import { adoptSpec } from "../src/app/adopt.ts";
import { sideEffects, unavailable } from "../src/app/controls/explain.ts";
import { grouped, lawsFor, startOf } from "../src/app/controls/starts.ts";
import { PRESETS, findPreset } from "../src/presets/index.ts";
import { validate } from "../src/spec/bounds.ts";
import { withBeta, withCount, withDimension, withModel, withStart } from "../src/spec/edit.ts";
import { settled } from "../src/spec/settle.ts";
import { spaceOf, tokenCount } from "../src/spec/size.ts";
import type { ModelName, Spec } from "../src/spec/types.ts";

const MODELS: ModelName[] = ["SA", "USA", "CausalSA", "HardmaxFlow", "RescaledSA"];

test("every start on offer is valid for every preset, model and dimension", () => {
  for (const { id, spec } of PRESETS) {
    for (const name of MODELS) {
      for (const d of [2, 3] as const) {
        const base = settled(withDimension(withModel(spec, name), d));
        assert.deepEqual(validate(base), [], `${id} ${name} ${d}`);
        for (const [law] of lawsFor(base)) {
          const next = settled(withStart(base, startOf(base, law)));
          assert.deepEqual(validate(next), [], `${id} ${name} ${d} ${law}`);
          assert.equal(next.tokens.law, law);
        }
      }
    }
  }
});

test("groups keep about as many tokens and never stand opposite in pairs", () => {
  const { spec } = findPreset("circle")!;
  for (const groups of [2, 3, 5]) {
    const next = withStart(spec, grouped(spec, groups));
    assert.deepEqual(validate(next), []);
    assert.ok(Math.abs(tokenCount(next) - 32) <= groups);
  }
  const two = grouped(spec, 2);
  assert.ok(two.law === "arcs" && Math.abs(two.centres[1]! - Math.PI) > 0.5);
});

test("what a change brings along is said", () => {
  const perceptron = findPreset("perceptron")!.spec;
  const said = sideEffects(perceptron, withModel(perceptron, "CausalSA"), "model").join(" ");
  assert.match(said, /no perceptron/);
  assert.match(sideEffects(perceptron, withModel(perceptron, "RescaledSA"), "model").join(" "), /in the plane/);
  const sphere = findPreset("sphere")!.spec;
  assert.match(sideEffects(sphere, settled(withBeta(sphere, 100)), null).join(" "), /step was shortened/);
  assert.deepEqual(sideEffects(sphere, withBeta(sphere, 8), null), []);
  const noise = findPreset("noise")!.spec;
  assert.match(sideEffects(noise, settled(withBeta(noise, 20)), null).join(" "), /step was shortened.*ends at t = 0\.002/);
  const five = findPreset("staircase")!.spec;
  assert.match(sideEffects(five, withCount(five, 9), "n").join(" "), /5 given tokens were replaced by 9 random/);
  assert.deepEqual(sideEffects(sphere, withCount(sphere, 9), "n"), []);
});

test("a run of layers ends after whole ones", () => {
  const { spec } = findPreset("leader")!;
  const broken = { ...spec, solve: { ...spec.solve, t1: 3.25 } };
  assert.match(validate(broken).join(" "), /whole number of layers/);
  assert.deepEqual(settled(broken).solve, { ...spec.solve, t1: 3 });
});

test("what a model cannot have is explained", () => {
  const sphere = findPreset("sphere")!.spec;
  for (const setting of ["plus", "noise", "normalisation"] as const) {
    assert.equal(unavailable(sphere, setting), null);
    assert.match(unavailable(withModel(sphere, "CausalSA"), setting) ?? "", /SA and USA/);
  }
  assert.match(unavailable(withModel(sphere, "RescaledSA"), "random") ?? "", /given V/);
});

test("an engine's resolved spec becomes the page's", () => {
  const resolved = {
    title: "noise",
    says: "",
    model: { name: "NoisyUSA", beta: 2, temperature: 0.2, convention: "perspective" },
    tokens: { law: "uniform", space: "sphere", d: 2, n: 64, seed: 7, samples: null, perturb: null, perturb_seed: 0, weights: null, ordered: true },
    solve: { t1: 10, method: "fixed", rtol: null, atol: null, dt: 0.005, step: null, seed: 7, max_steps: 100000, reduction: "dense" },
    save: { every: 0.1, observe: ["energy"] },
    output: null,
  };
  const adopted = adoptSpec(resolved) as Spec;
  assert.deepEqual(adopted.model, { name: "USA", beta: 2, convention: "perspective", noise: { kind: "brownian", temperature: 0.2 } });
  assert.equal(spaceOf(adopted), "sphere");
  assert.deepEqual(adopted.solve, { t1: 10, method: "fixed", dt: 0.005, seed: 7 });
});

test("adaptive runs get steps of their own, weights keep what they say", () => {
  const { spec } = findPreset("random-values")!;
  const given = {
    ...spec,
    model: { ...spec.model, weights: { ...spec.model.weights, heads: 1, per: "run", Q: null, period: null } },
    solve: { t1: 30, method: "adaptive", rtol: 1e-8, atol: 1e-10, seed: 0 },
  };
  const adopted = adoptSpec(given) as Spec;
  assert.deepEqual(adopted.model.weights, spec.model.weights);
  assert.equal(adopted.solve.method, "fixed");
});

test("what the page cannot simulate is refused in words", () => {
  const { spec } = findPreset("sphere")!;
  const heads = { ...spec, model: { ...spec.model, weights: { V: { law: "GOE", scale: 1 }, heads: 4 } } };
  assert.match(String(adoptSpec(heads)), /heads/);
  assert.match(String(adoptSpec({ ...spec, tokens: { ...spec.tokens, d: 16 } })), /cannot simulate/);
  assert.match(String(adoptSpec({ ...spec, model: { name: "SinkhornSA", beta: 1 } })), /cannot simulate/);
  for (const nothing of [null, 3, "spec", [], {}]) assert.match(String(adoptSpec(nothing)), /without its spec/);
});
