// The past of a run stays within its budget, evenly spaced, with its first and last frame.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Measured } from "../src/app/contract.ts";
import { type Entry, History } from "../src/app/history.ts";

const measured = (clusters: number): Measured => ({
  energy: clusters / 2,
  clusters,
  labels: new Int32Array(2),
  sizes: [2],
  order: 1,
  cosine: 1,
});

function entry(k: number): Entry {
  return { frame: { time: k / 10, points: new Float64Array([k, 0, 0, k]), radii: null }, steps: k, measured: measured(k) };
}

function filled(count: number, frames: number): History {
  const history = new History({ bytes: 1e9, frames });
  for (let k = 0; k < count; k++) history.push(entry(k));
  return history;
}

const steps = (history: History): number[] => Array.from({ length: history.length }, (_, k) => history.at(k).steps);

test("below the budget every frame is kept", () => {
  assert.deepEqual(steps(filled(10, 100)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("a full history is thinned evenly and keeps first and last", () => {
  for (const count of [101, 150, 333, 1000, 4097]) {
    const history = filled(count, 100);
    const kept = steps(history);
    assert.ok(kept.length <= 100 && kept.length >= 40, `${kept.length} of ${count}`);
    assert.equal(kept[0], 0);
    assert.equal(kept.at(-1), count - 1);
    const gaps = kept.slice(1, -1).map((step, k) => step - kept[k]!);
    assert.equal(new Set(gaps).size, 1, "equal gaps but for the last");
    assert.ok(count - 1 - kept.at(-2)! <= gaps[0]!);
  }
});

test("bytes are a budget too", () => {
  const history = new History({ bytes: 100 * (4 * 8 + 4 * 2 + 200), frames: 1e6 });
  for (let k = 0; k < 1000; k++) history.push(entry(k));
  assert.ok(history.length <= 100 && history.length > 30);
});

test("the track belongs to the frames, whatever was thrown away", () => {
  const history = filled(777, 64);
  history.truncate(20);
  for (let k = 0; k < 90; k++) history.push(entry(1000 + k));
  const { times, clusters, energy } = history.track;
  assert.equal(times.length, history.length);
  steps(history).forEach((step, k) => {
    assert.equal(times[k], step / 10);
    assert.equal(clusters[k], step);
    assert.equal(energy[k], step / 2);
  });
});

test("truncating forgets what comes later", () => {
  const history = filled(10, 100);
  history.truncate(3);
  assert.deepEqual(steps(history), [0, 1, 2, 3]);
  assert.deepEqual(history.track.times, [0, 0.1, 0.2, 0.3]);
});

test("the present can be replaced and measured later", () => {
  const history = filled(3, 100);
  history.replaceLast({ ...entry(2), measured: null });
  assert.deepEqual(history.track.clusters, [0, 1, null]);
  history.setMeasured(2, measured(7));
  assert.deepEqual(history.track.clusters, [0, 1, 7]);
  assert.equal(history.length, 3);
});
