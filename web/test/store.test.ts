// The store: what changes restart, what goes on, what is remembered. Frames are asked for by hand here.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Store } from "../src/app/contract.ts";
import { extend } from "../src/app/controls/edit.ts";
import { createStore } from "../src/app/store.ts";
import { findPreset } from "../src/presets/index.ts";
import type { RunReplay, SweepReplay } from "../src/replay/types.ts";
import { checkReplay, framesOf, pack } from "../src/replay/unpack.ts";
import { withBeta, withConvention, withCount, withModel, withStep } from "../src/spec/edit.ts";
import { display, useScreen } from "./screen.ts";

let store: Store;

beforeEach(() => {
  useScreen();
  store = createStore({ mode: "static", version: "test", replays: [] });
});
afterEach(() => store.dispose());

test("playing advances, records and measures; pausing stops", () => {
  store.playing.value = true;
  display(10);
  assert.equal(store.length.value, 11);
  assert.equal(store.position.value, 10);
  assert.ok(Math.abs(store.frame.value.time - 0.5) < 1e-12);
  assert.equal(store.track.value.times.length, 11);
  store.playing.value = false;
  display(5);
  assert.equal(store.length.value, 11);
});

test("the same steps give the same tokens, however they are made", () => {
  store.speed.value = 1;
  store.playing.value = true;
  display(8);
  const played = store.frame.value.points;
  store.playing.value = false;
  store.restart();
  for (let k = 0; k < 8; k++) store.stepOnce();
  assert.deepEqual(store.frame.value.points, played);
});

test("scrubbing shows the past, and playing from there drops what came later", () => {
  store.playing.value = true;
  display(20);
  const tenth = store.track.value.times[10];
  store.show(10);
  assert.equal(store.playing.value, false);
  assert.equal(store.frame.value.time, tenth);
  assert.equal(store.length.value, 21);
  store.playFromHere();
  display(1);
  assert.equal(store.length.value, 12);
  assert.equal(store.position.value, 11);
});

test("another beta goes on from the tokens, another n begins anew", () => {
  store.playing.value = true;
  display(6);
  const before = store.frame.value.points;
  store.changeModel((spec) => withBeta(spec, 3));
  assert.deepEqual(store.frame.value.points, before);
  assert.equal(store.edited.value, true);
  assert.equal(store.preset.value, null);
  assert.equal(store.curves.value.length, 0, "no theory for a run that was changed on the way");
  store.changeModel((spec) => withCount(spec, 50));
  assert.equal(store.n.value, 50);
  assert.equal(store.frame.value.points.length, 150);
  assert.equal(store.frame.value.time, 0);
  assert.equal(store.edited.value, false);
});

test("a change before the first step is no edit", () => {
  store.changeModel((spec) => withBeta(spec, 3));
  assert.equal(store.edited.value, false);
});

test("the step and the end that were chosen come back when the model slows down", () => {
  const { spec } = findPreset("noise")!;
  const now = () => store.spec.value.solve;
  store.setSpec(spec, "noise");
  store.changeModel((wanted) => withBeta(wanted, 20));
  assert.ok(now().t1 < 0.01);
  store.restart();
  store.changeModel((wanted) => withBeta(wanted, 2));
  assert.deepEqual(now(), spec.solve);
  store.changeModel((wanted) => withStep(wanted, 0.02));
  store.extend(50);
  store.changeModel((wanted) => withConvention(withBeta(wanted, 15), "perspective"));
  store.changeModel((wanted) => withModel(wanted, "SA"));
  assert.deepEqual(now(), { ...spec.solve, dt: 0.02, t1: 50 });
});

test("an end that cannot be reached is said", () => {
  store.setSpec(findPreset("leader")!.spec, "leader");
  extend(store, 3.25);
  assert.equal(store.spec.value.solve.t1, 3);
  assert.equal(store.preset.value, "leader");
  assert.match(store.message.value ?? "", /ends at t = 3: a run has whole layers/);
});

test("a changed run no longer carries the preset's sentence", () => {
  const { spec } = findPreset("metastability")!;
  const told = () => [store.spec.value.title, store.spec.value.says, store.recorded().says];
  store.setSpec(spec, "metastability");
  store.extend(300);
  assert.deepEqual(told(), [spec.title, spec.says, spec.says]);
  store.changeModel((wanted) => withBeta(wanted, 9));
  store.changeModel((wanted) => withBeta(wanted, 8));
  assert.deepEqual(told(), ["metastability, changed", "", ""]);
  store.setSpec(spec, "metastability");
  store.dragToken(0, [0, 1]);
  store.dragToken(0, [1, 0]);
  assert.deepEqual(told(), ["metastability, changed", "", ""]);
});

test("a dragged token is held, and marks the run as edited", () => {
  store.playing.value = true;
  display(3);
  store.dragToken(5, [0, 0, 1]);
  display(2);
  assert.deepEqual([...store.frame.value.points.slice(15, 18)], [0, 0, 1]);
  store.releaseToken();
  display(2);
  assert.notDeepEqual([...store.frame.value.points.slice(15, 18)], [0, 0, 1]);
  assert.equal(store.edited.value, true);
  store.restart();
  assert.equal(store.edited.value, false);
});

test("invalid settings are refused with a sentence", () => {
  const before = store.spec.value;
  store.changeModel((spec) => ({ ...spec, model: { ...spec.model, beta: -1 } }));
  assert.equal(store.spec.value, before);
  assert.match(store.message.value ?? "", /beta/);
});

test("a run pauses at its end and can go on", () => {
  const { spec } = findPreset("sphere")!;
  store.setSpec({ ...spec, solve: { ...spec.solve, t1: 0.5 } });
  store.speed.value = 4;
  store.playing.value = true;
  display(30);
  assert.equal(store.playing.value, false);
  assert.ok(Math.abs(store.frame.value.time - 0.5) < 1e-9);
  store.playFromHere();
  display(2);
  assert.ok(store.frame.value.time > 0.5);
});

test("over log t the beginning is not skipped, however fast it plays", () => {
  const { spec } = findPreset("circle")!;
  store.setSpec(spec);
  store.logTime.value = true;
  store.speed.value = 500;
  store.playing.value = true;
  display(60);
  const { times } = store.track.value;
  assert.deepEqual(times.slice(0, 10).map((time) => Math.round(time / 0.05)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  times.slice(11).forEach((time, k) => assert.ok(time <= 1.16 * times[k + 10]!, `${times[k + 10]} to ${time}`));
});

test("speeds below one skip frames", () => {
  store.speed.value = 0.25;
  store.playing.value = true;
  display(8);
  assert.ok(Math.abs(store.frame.value.time - 0.1) < 1e-12);
});

test("catching up arrives exactly where playing does", async () => {
  for (let k = 0; k < 37; k++) store.stepOnce();
  const there = store.frame.value;
  store.restart();
  await store.catchUp(37);
  assert.deepEqual(store.frame.value.points, there.points);
  assert.equal(store.stepsShown.value, 37);
  assert.equal(store.busy.value, null);
});

test("tokens of a link go on like the run they were taken from", () => {
  for (let k = 0; k < 5; k++) store.stepOnce();
  const { frame } = store;
  const taken = frame.value;
  for (let k = 0; k < 5; k++) store.stepOnce();
  const end = frame.value.points;
  store.setSpec(store.spec.value);
  store.jumpTo(taken, 5, false);
  for (let k = 0; k < 5; k++) store.stepOnce();
  assert.deepEqual(frame.value.points, end);
  assert.ok(Math.abs(frame.value.time - 0.5) < 1e-12);
});

test("what was recorded opens again as a replay with the same frames", () => {
  for (let k = 0; k < 4; k++) store.stepOnce();
  const last = store.frame.value;
  const replay = checkReplay(JSON.parse(JSON.stringify(store.recorded()))) as RunReplay;
  assert.deepEqual(framesOf(replay.times, replay.points).at(-1), last);
  store.open(replay);
  assert.equal(store.source.value.kind, "replay");
  assert.equal(store.length.value, 5);
  store.show(4);
  assert.deepEqual(store.frame.value.points, last.points);
  store.dragToken(0, [1, 0, 0]);
  assert.match(store.message.value ?? "", /cannot be moved/);
  store.backToLive();
  assert.deepEqual(store.frame.value, last);
});

test("a cell of a sweep is watched with its settings", () => {
  const sweep: SweepReplay = {
    kind: "sweep",
    title: "sweep",
    says: "",
    rows: { name: "beta", values: [1, 2] },
    columns: { name: "n", values: [10, 20, 30] },
    statistics: [{ name: "clusters", values: pack(new Float64Array(6), [2, 3]) }],
    spec: findPreset("circle")!.spec,
  };
  store.open(sweep);
  store.watchCell(1, 2);
  assert.equal(store.spec.value.model.beta, 2);
  assert.equal(store.n.value, 30);
  store.open({ ...sweep, columns: { ...sweep.columns, name: "unheard_of" } });
  store.watchCell(0, 0);
  assert.match(store.message.value ?? "", /unheard_of/);
});
