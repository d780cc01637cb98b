// What charts and exports compute before they draw.
import assert from "node:assert/strict";
import { test } from "node:test";
import { differenceInWords, largestDistance } from "../src/charts/difference.ts";
import { align, grid, nearestIndex, thin, valueText } from "../src/charts/lines.ts";
import { cellUnder, fieldOf, labelledTicks, moveCell, PLOT } from "../src/charts/sweepGrid.ts";
import { findPreset } from "../src/presets/index.ts";
import type { ModelSpec, Spec, TokensSpec } from "../src/spec/types.ts";
import { curvesFor } from "../src/theory/index.ts";
import { framesShown, MOST_SECONDS, RATE } from "../src/export/frames.ts";

test("the nearest time is found by bisection, ends included", () => {
  const times = [0, 1, 2, 4, 8];
  assert.deepEqual([-5, 0.4, 0.6, 3.5, 100].map((time) => nearestIndex(times, time)), [0, 0, 1, 3, 4]);
  assert.equal(nearestIndex([], 1), -1);
  const many = Float64Array.from({ length: 1001 }, (_, i) => i * i);
  for (const wanted of [3, 777.7, 12345, 999_999]) {
    const best = many.reduce((b, time, i) => (Math.abs(time - wanted) < Math.abs(many[b]! - wanted) ? i : b), 0);
    assert.equal(nearestIndex(many, wanted), best);
  }
});

test("thinning leaves out gaps and keeps ends and spikes", () => {
  const times = Array.from({ length: 10_000 }, (_, i) => i);
  const values = times.map((i) => (i % 3 === 0 ? null : i === 5_000 ? 100 : Math.sin(i / 1_000)));
  const line = thin({ times, values }, 200);
  assert.ok(line.times.length <= 202);
  assert.ok(line.values.includes(100));
  assert.equal(line.times[0], 1);
  assert.equal(line.times.at(-1), 9_998);
  assert.ok(line.times.every((time, i) => i === 0 || time > line.times[i - 1]!));
  assert.deepEqual(thin({ times: [0, 1, 2], values: [1, Number.NaN, 3] }, 10), { times: [0, 2], values: [1, 3] });
});

test("lines on different times share one axis", () => {
  const { times, columns } = align([
    { times: [0, 2], values: [1, 3] },
    { times: [1, 2], values: [10, 20] },
  ]);
  assert.deepEqual(times, [0, 1, 2]);
  assert.deepEqual(columns, [[1, null, 3], [null, 10, 20]]);
});

test("a formula is evaluated evenly on the axis that is shown", () => {
  assert.deepEqual(grid(0, 1, 3, false), [0, 0.5, 1]);
  grid(0.01, 1, 3, true).forEach((time, i) => assert.ok(Math.abs(time - [0.01, 0.1, 1][i]!) < 1e-12));
  assert.deepEqual(grid(0, 1, 3, true), []);
});

test("values are short, and unknown ones are a dash", () => {
  assert.deepEqual([3, 0.123456, 1e-7, 123456.7, null, Number.NaN].map(valueText), ["3", "0.1235", "1.00e-7", "1.23e+5", "–", "–"]);
});

test("live and exact are compared token by token, and rounded upwards", () => {
  const live = { time: 1, points: Float64Array.of(1, 0, 0, 1), radii: null };
  const exact = { time: 1, points: Float64Array.of(1, 0, 3.1e-6, 1 + 4e-6), radii: null };
  assert.ok(Math.abs(largestDistance(live, exact, 2) - Math.hypot(3.1e-6, 4e-6)) < 1e-15);
  assert.equal(differenceInWords(live, exact, true, 2), "live and exact differ by at most 6e-6");
  assert.match(differenceInWords(live, exact, false, 2), /interpolated/);
  assert.equal(differenceInWords(live, live, true, 2), "live and exact agree to the last digit");
});

const SWEEP = {
  kind: "sweep",
  title: "",
  says: "",
  rows: { name: "n", values: [8, 16, 32] },
  columns: { name: "beta", values: [1, 2] },
  statistics: [],
  spec: null,
} as const;

test("rows of a sweep grow upwards, and what was not measured does not set the scale", () => {
  const field = fieldOf(structuredClone(SWEEP) as never, [1, 2, 3, Number.NaN, 5, 6]);
  assert.deepEqual([field.rows, field.columns, field.least, field.most], [3, 2, 1, 6]);
  const [width, height] = [PLOT.left + PLOT.right + 200, PLOT.top + PLOT.bottom + 300];
  assert.deepEqual(cellUnder(PLOT.left + 10, PLOT.top + 290, width, height, field), { row: 0, column: 0 });
  assert.deepEqual(cellUnder(PLOT.left + 190, PLOT.top + 10, width, height, field), { row: 2, column: 1 });
  assert.equal(cellUnder(PLOT.left - 1, PLOT.top + 10, width, height, field), null);
  assert.deepEqual(moveCell({ row: 0, column: 0 }, "ArrowUp", field), { row: 1, column: 0 });
  assert.deepEqual(moveCell({ row: 2, column: 1 }, "ArrowRight", field), { row: 2, column: 1 });
  assert.equal(moveCell({ row: 0, column: 0 }, "x", field), null);
});

test("as many settings are labelled as there is room for, with both ends", () => {
  assert.deepEqual(labelledTicks(5, 100), [0, 1, 2, 3, 4]);
  assert.deepEqual(labelledTicks(9, 3.7), [0, 4, 8]);
  assert.deepEqual(labelledTicks(9, 0.2), [0]);
});

test("a video shows every frame, or as many as fit, with both ends", () => {
  assert.deepEqual(framesShown(4), [0, 1, 2, 3]);
  const long = framesShown(12_345);
  assert.equal(long.length, RATE * MOST_SECONDS);
  assert.deepEqual([long[0], long.at(-1)], [0, 12_344]);
  assert.ok(long.every((frame, i) => i === 0 || frame > long[i - 1]!));
});

function labelsOf(model: ModelSpec, tokens: TokensSpec): string {
  const spec: Spec = { title: "", says: "", model, tokens, solve: { t1: 10, method: "fixed", dt: 0.01, seed: 0 } };
  return curvesFor(spec).map(({ label }) => label).join(", ");
}

test("the equiangular law is drawn for starts with one common angle only", () => {
  const { model } = findPreset("circle")!.spec;
  for (const id of ["circle", "sphere", "warm", "staircase", "modes"]) {
    const { spec } = findPreset(id)!;
    assert.doesNotMatch(labelsOf(spec.model, spec.tokens), /equiangular/, id);
  }
  assert.match(labelsOf(model, { law: "uniform", d: 3, n: 2, seed: 1 }), /equiangular/);
  assert.match(labelsOf(model, { law: "equiangular", d: 3, n: 3, correlation: 0.2 }), /equiangular/);
  assert.match(labelsOf(model, { law: "equiangular", d: 3, n: 3, correlation: 0.2, perturb: 1e-3 }), /equiangular/);
  assert.doesNotMatch(labelsOf(model, { law: "uniform", d: 3, n: 3, seed: 1 }), /equiangular/);
});

test("a wave is predicted only for many tokens per crest", () => {
  const circle = (n: number): TokensSpec => ({ law: "uniform", d: 2, n, seed: 1 });
  assert.doesNotMatch(labelsOf({ name: "SA", beta: 100 }, circle(8)), /mode/);
  assert.doesNotMatch(labelsOf({ name: "SA", beta: 100 }, circle(64)), /mode/);
  assert.match(labelsOf({ name: "SA", beta: 100 }, circle(256)), /dominant mode 14/);
  assert.match(labelsOf({ name: "SA", beta: 4 }, circle(32)), /dominant mode 3/);
});

test("Renyi centres are counted where tokens hear themselves and earlier ones alike", () => {
  const { model, tokens } = findPreset("causal")!.spec;
  assert.match(labelsOf({ ...model, self_term: true, slope: 0 }, tokens), /centres/);
  assert.doesNotMatch(labelsOf({ ...model, self_term: false }, tokens), /centres/);
  assert.doesNotMatch(labelsOf({ ...model, slope: 0.1 }, tokens), /centres/);
});
