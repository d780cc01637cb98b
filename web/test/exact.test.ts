// What is asked of the engine, and what becomes of its answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exact, Frame, Store } from "../src/app/contract.ts";
import { exactNote, fromHere, requestOf, restartProblem, withPart } from "../src/app/exact.ts";
import { emptyTrack } from "../src/app/history.ts";
import { frameAt, indexBefore } from "../src/app/interpolate.ts";
import { startTokens } from "../src/physics/start.ts";
import { findPreset } from "../src/presets/index.ts";
import { evenly } from "../src/replay/record.ts";
import { checkReplay, pack, unpack } from "../src/replay/unpack.ts";
import { validate } from "../src/spec/bounds.ts";
import type { ModelSpec } from "../src/spec/types.ts";

const { spec } = findPreset("circle")!;
const start = startTokens(spec);

test("saved times are whole steps, and few enough", () => {
  const request = requestOf(spec, start, false, 2);
  assert.equal(request.spec, spec);
  const steps = request.every / 0.05;
  assert.ok(Math.abs(steps - Math.round(steps)) < 1e-9);
  assert.ok(request.t1 / request.every <= 1000);
});

test("an edited run goes on from the tokens that are shown", () => {
  const shown: Frame = { ...start, time: 12 };
  const request = requestOf(spec, shown, true, 2);
  assert.equal(request.offset, 12);
  assert.ok(Math.abs(request.t1 - 28) < 1e-9);
  assert.deepEqual(validate(request.spec), []);
  assert.ok(request.spec.tokens.law === "points");
  assert.deepEqual(startTokens(request.spec).points, start.points);
  assert.deepEqual(validate(fromHere(findPreset("polytope")!.spec, startTokens(findPreset("polytope")!.spec), 2)), []);
});

test("an edited run whose state is more than its tokens cannot go on in the engine", () => {
  const problem = (model: Partial<ModelSpec>, time: number, radii: Float64Array | null = null, edited = true) => {
    const changed = { ...spec, model: { ...spec.model, ...model } as ModelSpec };
    const shown: Frame = { ...start, time, radii };
    return restartProblem({ spec: { value: changed }, frame: { value: shown }, edited: { value: edited } } as Store);
  };
  const timed: Partial<ModelSpec>[] = [
    { name: "RescaledSA" },
    { normalisation: { scheme: "sqrt" } },
    { normalisation: { scheme: "mix", tau: 5 } },
  ];
  for (const model of timed) {
    assert.match(problem(model, 3)!, /depends on the time.*restart/);
    assert.equal(problem(model, 0), null, "at the start its time is the engine's");
    assert.equal(problem(model, 3, null, false), null, "the spec tells it");
  }
  const pre: Partial<ModelSpec> = { normalisation: { scheme: "pre" } };
  assert.match(problem(pre, 3, Float64Array.of(1, 1.2))!, /radii.*restart/);
  assert.equal(problem(pre, 0, Float64Array.of(1, 1)), null);
  assert.equal(problem({}, 3), null);
});

test("with noise nobody is promised the same path", () => {
  const note = (model: Partial<ModelSpec>, edited: boolean) =>
    exactNote({ spec: { value: { ...spec, model: { ...spec.model, ...model } } }, frame: { value: start }, edited: { value: edited } } as Store);
  const noise = { kind: "brownian" as const, temperature: 0.1 };
  for (const edited of [false, true]) {
    assert.match(note({ noise }, edited), /another path of the same noise/);
    assert.match(note({}, edited), /where it puts the tokens/);
  }
});

test("parts are joined, with times of the page", () => {
  const run: Exact = { status: "queued", message: "", fraction: 0, frames: [], track: emptyTrack() };
  const part = (times: number[], fraction: number) => ({
    type: "frames" as const,
    times,
    points: pack(new Float64Array(times.length * 4).map((_, k) => k), [times.length, 2, 2]),
    series: { energy: times.map((t) => -t), clusters: times.map(() => 2) },
    fraction,
  });
  const joined = withPart(withPart(run, part([0, 1], 0.5), 10), part([2], 1), 10);
  assert.deepEqual(joined.track.times, [10, 11, 12]);
  assert.deepEqual(joined.track.energy, [-0, -1, -2]);
  assert.deepEqual(joined.track.order, [null, null, null]);
  assert.deepEqual([...joined.frames[1]!.points], [4, 5, 6, 7]);
  assert.equal(joined.fraction, 1);
});

test("between saved times the exact run is interpolated to fourth order", () => {
  const turning = (spacing: number): Frame[] =>
    Array.from({ length: 50 }, (_, k) => {
      const time = k * spacing;
      return { time, points: new Float64Array([Math.cos(time * time), Math.sin(time * time)]), radii: null };
    });
  const error = (spacing: number): number => {
    const at = 1.03;
    const { points } = frameAt(turning(spacing), at, true, 2)!;
    return Math.hypot(points[0]! - Math.cos(at * at), points[1]! - Math.sin(at * at));
  };
  assert.ok(error(0.1) < 1e-3);
  assert.ok(error(0.1) / error(0.05) > 10);
  const frames = turning(0.1);
  assert.equal(frameAt(frames, frames[3]!.time + 1e-13, true, 2), frames[3], "the saved frame itself where there is one");
});

test("outside of what was computed there is nothing", () => {
  const frames: Frame[] = [0, 1, 2].map((time) => ({ time, points: new Float64Array([1, 0]), radii: null }));
  assert.equal(frameAt(frames, -1, true, 2), null);
  assert.equal(frameAt(frames, 2.5, true, 2), null);
  assert.equal(frameAt(frames, 1, true, 2), frames[1]);
  assert.equal(frameAt([], 0, true, 2), null);
  assert.equal(indexBefore([0, 1, 2], 1.5), 1);
});

test("arrays survive packing; wrong ones are refused", () => {
  const values = Float64Array.from({ length: 12 }, () => Math.random());
  assert.deepEqual(unpack(pack(values, [3, 4])), values);
  assert.deepEqual(unpack(pack(values, [3, 4], "float32")), Float64Array.from(Float32Array.from(values)));
  assert.throws(() => unpack({ ...pack(values, [3, 4]), shape: [5, 4] }), /shape 5 x 4/);
  for (const bad of [null, 1, {}, { kind: "film" }, { kind: "run" }, { kind: "sweep", rows: {} }]) {
    assert.throws(() => checkReplay(bad), (error: Error) => error.message.length > 10);
  }
});

test("broken replays are refused with a sentence", () => {
  const numbers = (shape: number[]) => pack(new Float64Array(shape.reduce((a, b) => a * b)), shape);
  const run = { kind: "run", times: [0, 1], space: "sphere", points: numbers([2, 3, 2]), series: [{ name: "energy", values: [1, null] }] };
  const axis = { name: "beta", values: [1, 2] };
  const sweep = { kind: "sweep", title: "s", rows: axis, columns: axis, statistics: [{ name: "k", values: numbers([2, 2]) }] };
  for (const good of [run, sweep]) checkReplay(JSON.parse(JSON.stringify(good)));
  const short = { ...numbers([2, 2]), data: numbers([3]).data };
  const broken: [unknown, RegExp][] = [
    [{ ...run, times: [0, "1"] }, /times/],
    [{ ...run, times: [0, null] }, /times/],
    [{ ...run, times: [1, 0] }, /times/],
    [{ ...run, series: [{ name: "energy" }] }, /energy/],
    [{ ...run, series: [null] }, /series/],
    [{ ...run, series: [{ name: "energy", values: ["a", "b"] }] }, /energy/],
    [{ ...run, series: {} }, /series/],
    [{ ...run, labels: "abc" }, /labels/],
    [{ ...run, notes: "text" }, /notes/],
    [{ ...run, points: { ...run.points, data: run.points.data.slice(8) } }, /points/],
    [{ ...run, points: { ...run.points, data: run.points.data.replace("A", "!") } }, /points/],
    [{ ...sweep, rows: { name: "beta", values: [1, null] } }, /rows/],
    [{ ...sweep, columns: { values: [1, 2] } }, /columns/],
    [{ ...sweep, statistics: [{ name: "k", values: short }] }, /k does not hold/],
    [{ ...sweep, statistics: [null] }, /not an array/],
  ];
  for (const [replay, reason] of broken) assert.throws(() => checkReplay(replay), reason);
});

test("evenly chosen frames keep both ends", () => {
  assert.deepEqual(evenly(3, 10), [0, 1, 2]);
  assert.deepEqual(evenly(11, 3), [0, 5, 10]);
  assert.deepEqual(evenly(1, 5), [0]);
  assert.deepEqual(evenly(0, 5), []);
});
