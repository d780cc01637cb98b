// Every step of the tour recognises its action, and nothing less.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Glance, type Since, sinceWhen, TOUR } from "../src/app/tour.ts";
import { findPreset } from "../src/presets/index.ts";
import { RELU_PERCEPTRON } from "../src/presets/mechanisms.ts";
import { withBeta, withPerceptron } from "../src/spec/edit.ts";

function begin(k: number): Glance {
  return { spec: findPreset(TOUR[k]!.preset)!.spec, time: 0, ran: 0, clusters: 30, edited: false };
}

test("no step is done before anything happened", () => {
  TOUR.forEach((step, k) => assert.equal(step.done(begin(k), begin(k)), false, step.title));
});

const DONE: ((start: Glance) => Partial<Glance>)[] = [
  () => ({ time: 3, ran: 3, clusters: 12 }),
  ({ spec }) => ({ spec: withBeta(spec, 25), time: 9, ran: 9, clusters: 10 }),
  () => ({ clusters: 1, time: 190, ran: 190 }),
  () => ({ edited: true, time: 3, ran: 3 }),
  ({ spec }) => ({ spec: withPerceptron(spec, RELU_PERCEPTRON), time: 3, ran: 3 }),
];

test("each action is recognised", () => {
  DONE.forEach((change, k) => {
    const start = begin(k);
    assert.equal(TOUR[k]!.done({ ...start, ...change(start) }, start), true, TOUR[k]!.title);
  });
});

test("almost is not enough", () => {
  assert.equal(TOUR[0]!.done({ ...begin(0), time: 3, ran: 3, clusters: 28 }, begin(0)), false, "not gathered yet");
  const warm = begin(1);
  const cold = withBeta(warm.spec, 25);
  assert.equal(TOUR[1]!.done({ ...warm, spec: withBeta(warm.spec, 5), time: 9, ran: 9 }, warm), false);
  assert.equal(TOUR[1]!.done({ ...warm, spec: cold, time: 9, ran: 9, clusters: 1 }, warm), false, "one cluster is not more");
  assert.equal(TOUR[1]!.done({ ...warm, spec: cold, time: 9, ran: 0, clusters: 5 }, warm), false, "moved, not played");
  const { spec: other } = findPreset("warm")!;
  assert.equal(TOUR[2]!.done({ ...begin(2), spec: other, time: 9, ran: 9, clusters: 1 }, begin(2)), false, "another preset");
  const off = begin(4);
  const on = withPerceptron(off.spec, RELU_PERCEPTRON);
  assert.equal(TOUR[4]!.done({ ...off, spec: on, time: 9, ran: 0 }, off), false, "switched on, not run");
  assert.equal(TOUR[2]!.done({ ...begin(2), clusters: 2, time: 100 }, begin(2)), false);
  const causal = begin(3);
  assert.equal(TOUR[3]!.done({ ...causal, spec: withBeta(causal.spec, 9), edited: true, time: 3 }, causal), false);
});

test("time is counted since the model was changed, also after a restart", () => {
  const { spec } = findPreset("warm")!;
  const steps: [typeof spec, number, number][] = [
    [spec, 0, 0],
    [spec, 5, 0],
    [withBeta(spec, 20), 5, 5],
    [withBeta(spec, 20), 7, 5],
    [withBeta(spec, 20), 0, 0],
    [withBeta(spec, 20), 3, 0],
  ];
  let since: Since | null = null;
  for (const [now, time, expected] of steps) {
    since = sinceWhen(since, now, time);
    assert.equal(since.time, expected);
  }
});

test("a student reads it in a minute", () => {
  const words = TOUR.flatMap(({ text, action, praise }) => `${text} ${action} ${praise}`.split(/\s+/)).length;
  assert.ok(words < 420, String(words));
});
