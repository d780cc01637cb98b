// Every preset is valid, and what its sentence says about the run is so.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Measured } from "../src/app/contract.ts";
import { TOUR } from "../src/app/tour.ts";
import { measure } from "../src/observe/index.ts";
import { makeSimulator, type Simulator } from "../src/physics/simulator.ts";
import { startTokens } from "../src/physics/start.ts";
import { findPreset, PRESETS } from "../src/presets/index.ts";
import { validate } from "../src/spec/bounds.ts";
import { stepOf } from "../src/spec/size.ts";
import type { Spec } from "../src/spec/types.ts";

const CORE = [
  ...["2312.10794", "2305.05465", "2410.06833", "2411.04990", "2407.01602", "2410.23228"],
  ...["2510.22026", "2512.01868", "2601.21366", "2509.25040", "2504.14697", "2405.18273"],
];

function begin(spec: Spec): Simulator {
  const simulator = makeSimulator(spec, "js");
  simulator.put(startTokens(spec), 0);
  return simulator;
}

function runTo(simulator: Simulator, spec: Spec, time: number): Measured {
  simulator.advance(Math.round((time - simulator.time) / stepOf(spec)));
  return look(simulator, spec);
}

function look(simulator: Simulator, spec: Spec): Measured {
  const { time, points, radii } = simulator;
  return measure(spec, { time, points: points.slice(), radii });
}

test("every preset is valid, named once, and says what to watch for", () => {
  assert.equal(new Set(PRESETS.map(({ id }) => id)).size, PRESETS.length);
  for (const { id, spec, speed } of PRESETS) {
    assert.deepEqual(validate(spec), [], id);
    assert.match(id, /^[a-z-]+$/);
    assert.ok(spec.says.length > 40 && spec.says.endsWith("."), id);
    assert.ok(speed > 0);
  }
});

test("every core paper has a preset", () => {
  for (const arxiv of CORE) assert.ok(PRESETS.some(({ paper }) => paper?.arxiv === arxiv), arxiv);
});

test("the tour uses presets that exist", () => {
  assert.equal(TOUR.length, 5);
  for (const { preset } of TOUR) assert.ok(findPreset(preset), preset);
});

/** Number of clusters at times that the sentences name. */
const COUNTS: Record<string, [time: number, clusters: number][]> = {
  sphere: [[6, 6], [11, 6], [12.5, 4], [39, 4], [41, 3]],
  warm: [[7, 1]],
  circle: [[7, 3], [12, 2], [335.5, 2], [336, 1]],
  modes: [[10, 4], [20, 4]],
  metastability: [[5, 2], [188.5, 2], [189.5, 1]],
  staircase: [[0.4, 5], [0.5, 4], [1.3, 4], [1.4, 3], [4.3, 3], [4.5, 2], [327, 2], [328, 1]],
  causal: [[90, 7], [100, 7]],
  pentagon: [[9, 5], [12, 1], [16, 1]],
  phases: [[6, 5], [7.7, 5], [7.8, 4], [27, 4], [27.5, 3], [40, 3]],
  polytope: [[4, 5], [5, 5]],
  hardmax: [[4, 5], [10, 5]],
  leader: [[10, 3]],
  "post-ln": [[8, 2]],
  "pre-ln": [[40, 10]],
  perceptron: [[8, 2], [40, 2], [200, 2]],
  "perceptron-off": [[20, 3], [34, 2]],
  "random-values": [[2, 2], [10, 2]],
};

for (const [id, expected] of Object.entries(COUNTS)) {
  test(`${id}: clusters as its sentence says`, () => {
    const { spec } = findPreset(id)!;
    const simulator = begin(spec);
    for (const [time, clusters] of expected) {
      assert.equal(runTo(simulator, spec, time).clusters, clusters, `at t = ${time}`);
    }
  });
}

test("warm: beta = 20 leaves about a dozen groups", () => {
  const { spec } = findPreset("warm")!;
  const cold: Spec = { ...spec, model: { ...spec.model, beta: 20 } };
  const { clusters } = runTo(begin(cold), cold, 10);
  assert.ok(clusters >= 9 && clusters <= 14, String(clusters));
});

test("metastability: beta = 6 waits almost four times as long", () => {
  const { spec } = findPreset("metastability")!;
  const colder: Spec = { ...spec, model: { ...spec.model, beta: 6 } };
  const simulator = begin(colder);
  assert.equal(runTo(simulator, colder, 3.9 * 188.9).clusters, 2);
  assert.equal(runTo(simulator, colder, 4 * 188.9).clusters, 1);
});

test("one-point: the order never falls, and approaches one ninefold per unit of time", () => {
  const { spec } = findPreset("one-point")!;
  const simulator = begin(spec);
  const orders = Array.from({ length: 33 }, (_, k) => runTo(simulator, spec, k / 4).order);
  orders.slice(1).forEach((order, k) => assert.ok(order > orders[k]!, `at t = ${(k + 1) / 4}`));
  assert.ok(orders[8]! > 0.97);
  for (let t = 3; t < 8; t++) {
    const shrunk = (1 - orders[4 * t]!) / (1 - orders[4 * (t + 1)]!);
    assert.ok(Math.abs(shrunk - 9) < 0.25, `${shrunk} from t = ${t}`);
  }
});

test("phases: the cloud is flat when the groups stand", () => {
  const { spec } = findPreset("phases")!;
  const simulator = begin(spec);
  const height = (): number => Math.max(...simulator.points.filter((_, k) => k % 3 === 2).map(Math.abs));
  assert.ok(height() > 0.9);
  runTo(simulator, spec, 6);
  assert.ok(height() < 0.05, String(height()));
});

test("causal: the first token rests", () => {
  const { spec } = findPreset("causal")!;
  const simulator = begin(spec);
  const first = [...simulator.points.slice(0, 2)];
  runTo(simulator, spec, 100);
  first.forEach((x, k) => assert.ok(Math.abs(x - simulator.points[k]!) < 1e-12));
});

test("hardmax: five tokens have not moved, and everybody is near one of them", () => {
  const { spec } = findPreset("hardmax")!;
  const simulator = begin(spec);
  const start = simulator.points.slice();
  runTo(simulator, spec, 4);
  const { points } = simulator;
  const distance = (a: Float64Array, i: number, b: Float64Array, j: number): number =>
    Math.hypot(a[2 * i]! - b[2 * j]!, a[2 * i + 1]! - b[2 * j + 1]!);
  const tokens = Array.from({ length: 64 }, (_, i) => i);
  const leaders = tokens.filter((i) => distance(points, i, start, i) < 1e-12);
  assert.equal(leaders.length, 5);
  for (const i of tokens) assert.ok(Math.min(...leaders.map((j) => distance(points, i, points, j))) < 0.2);
});

test("leader: a token near the middle ends alone", () => {
  const { spec } = findPreset("leader")!;
  const simulator = begin(spec);
  const { sizes } = runTo(simulator, spec, 10);
  assert.deepEqual(sizes, [4, 3, 1]);
  assert.ok(Math.hypot(simulator.points[2]!, simulator.points[3]!) < 0.2);
});

test("lines: two upright lines, and spreading along them", () => {
  const { spec } = findPreset("lines")!;
  const simulator = begin(spec);
  runTo(simulator, spec, 5);
  const across = [...simulator.points].filter((_, k) => k % 2 === 0);
  const along = [...simulator.points].filter((_, k) => k % 2 === 1);
  for (const x of across) assert.ok(Math.min(Math.abs(x - 1.74), Math.abs(x + 1.85)) < 0.05, String(x));
  assert.ok(Math.max(...along) - Math.min(...along) > 4);
});

test("pre-LN: radii grow like t", () => {
  const { spec } = findPreset("pre-ln")!;
  const simulator = begin(spec);
  runTo(simulator, spec, 40);
  const mean = simulator.radii!.reduce((sum, r) => sum + r, 0) / simulator.n;
  assert.ok(mean > 30 && mean < 41, String(mean));
});

test("noise: aligned below the critical temperature, not above", () => {
  const { spec } = findPreset("noise")!;
  const simulator = begin(spec);
  for (const time of [15, 20, 25, 30]) {
    const { order } = runTo(simulator, spec, time);
    assert.ok(order > 0.8 && order < 0.99, `${order} at t = ${time}`);
  }
  const hot: Spec = { ...spec, model: { ...spec.model, noise: { kind: "brownian", temperature: 1.2 } } };
  simulator.change(hot);
  assert.ok(runTo(simulator, hot, 60).order < 0.4);
});

test("perceptron: clusters of 23 and 9 that stand still", () => {
  const { spec } = findPreset("perceptron")!;
  const simulator = begin(spec);
  assert.deepEqual(runTo(simulator, spec, 10).sizes, [23, 9]);
  runTo(simulator, spec, 20);
  const before = simulator.points.slice();
  runTo(simulator, spec, 40);
  before.forEach((x, k) => assert.ok(Math.abs(x - simulator.points[k]!) < 1e-4));
});

test("repulsive: spread over the sphere", () => {
  const { spec } = findPreset("repulsive")!;
  const measured = runTo(begin(spec), spec, 20);
  assert.ok(measured.order < 0.05 && measured.clusters === 48);
});

test("random V: two opposite groups", () => {
  const { spec } = findPreset("random-values")!;
  const { order, sizes } = runTo(begin(spec), spec, 10);
  const [one = 0, other = 0] = sizes;
  assert.ok(Math.abs(order - (one - other) / 64) < 1e-6);
});
