// Every step of the tour recognises its action, and nothing less.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Glance, TOUR } from "../src/app/tour.ts";
import { findPreset } from "../src/presets/index.ts";
import { RELU_PERCEPTRON } from "../src/presets/mechanisms.ts";
import { withBeta, withPerceptron } from "../src/spec/edit.ts";

function begin(k: number): Glance {
  return { spec: findPreset(TOUR[k]!.preset)!.spec, time: 0, clusters: 30, edited: false };
}

test("no step is done before anything happened", () => {
  TOUR.forEach((step, k) => assert.equal(step.done(begin(k), begin(k)), false, step.title));
});

const DONE: ((start: Glance) => Partial<Glance>)[] = [
  () => ({ time: 2 }),
  ({ spec }) => ({ spec: withBeta(spec, 25), time: 1 }),
  () => ({ clusters: 1, time: 190 }),
  () => ({ edited: true, time: 3 }),
  ({ spec }) => ({ spec: withPerceptron(spec, RELU_PERCEPTRON), time: 1 }),
];

test("each action is recognised", () => {
  DONE.forEach((change, k) => {
    const start = begin(k);
    assert.equal(TOUR[k]!.done({ ...start, ...change(start) }, start), true, TOUR[k]!.title);
  });
});

test("almost is not enough", () => {
  const warm = begin(1);
  assert.equal(TOUR[1]!.done({ ...warm, spec: withBeta(warm.spec, 5), time: 9 }, warm), false);
  assert.equal(TOUR[2]!.done({ ...begin(2), clusters: 2, time: 100 }, begin(2)), false);
  const causal = begin(3);
  assert.equal(TOUR[3]!.done({ ...causal, spec: withBeta(causal.spec, 9), edited: true, time: 3 }, causal), false);
});

test("a student reads it in a minute", () => {
  const words = TOUR.flatMap(({ text, action, praise }) => `${text} ${action} ${praise}`.split(/\s+/)).length;
  assert.ok(words < 420, String(words));
});
