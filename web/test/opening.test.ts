// Links and presets in a store: what is copied, and what opening it brings back.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Store } from "../src/app/contract.ts";
import { applyState, followHash, linkOf, stateOf, visitPreset } from "../src/app/opening.ts";
import { createStore } from "../src/app/store.ts";
import { findPreset } from "../src/presets/index.ts";
import type { SweepReplay } from "../src/replay/types.ts";
import { pack } from "../src/replay/unpack.ts";

const address = { href: "http://here/", hash: "" };
let pushed: string[] = [];
let store: Store;

beforeEach(() => {
  pushed = [];
  address.hash = "";
  Object.assign(globalThis, {
    location: address,
    history: { pushState: (_: unknown, __: string, hash: string) => pushed.push((address.hash = hash)) },
    requestAnimationFrame: () => 1,
    cancelAnimationFrame: () => undefined,
  });
  store = createStore({ mode: "static", version: "test", replays: [] });
});
afterEach(() => store.dispose());

const preset = (id: string) => findPreset(id)!;

/** A run that came some steps far, as its link tells it. */
function stateAfter(steps: number, id = "metastability") {
  store.setSpec(preset(id).spec, id);
  for (let k = 0; k < steps; k++) store.stepOnce();
  return structuredClone(stateOf(store));
}

test("only a preset as it is given has a short link", async () => {
  await followHash(store, "#preset=sphere");
  assert.equal(await linkOf(store), "http://here/#preset=sphere");
  store.extend(17);
  assert.match(await linkOf(store), /#state=/);
  await followHash(store, "#preset=sphere");
  store.camera.value = { stage: "sphere", position: [0, 0, 4], target: [0, 0, 0] };
  assert.match(await linkOf(store), /#state=/);
});

test("an opened link has its past, its very tokens, and goes on", async () => {
  const state = stateAfter(60);
  store.stepOnce();
  const next = store.frame.value.points;
  await applyState(store, state);
  assert.deepEqual(store.frame.value, state.frame);
  assert.ok(store.length.value > 20);
  assert.equal(store.position.value, store.length.value - 1);
  assert.ok(store.track.value.clusters.every((count) => count !== null));
  assert.equal(store.preset.value, "metastability");
  store.stepOnce();
  assert.deepEqual(store.frame.value.points, next);
});

test("the carried tokens win over those computed here", async () => {
  const state = stateAfter(10);
  const points = state.frame!.points.map((value) => value * (1 + 1e-9));
  await applyState(store, { ...state, frame: { ...state.frame!, points } });
  assert.deepEqual(store.frame.value.points, points);
  assert.ok(store.length.value > 5);
});

test("an edited run has no past that could be computed", async () => {
  stateAfter(10);
  store.dragToken(3, [0, 1]);
  store.releaseToken();
  const state = structuredClone(stateOf(store));
  await applyState(store, state);
  assert.equal(store.length.value, 1);
  assert.deepEqual(store.frame.value, state.frame);
  assert.equal(store.edited.value, true);
});

test("cancelled or too slow, a link opens without its past", async () => {
  const state = stateAfter(10);
  const opening = applyState(store, { ...state, steps: 500_000, time: 25_000 });
  await new Promise((resume) => setTimeout(resume, 5));
  store.busy.value!.cancel();
  await opening;
  assert.equal(store.length.value, 1);
  assert.deepEqual(store.frame.value.points, state.frame!.points);
  const began = performance.now();
  await applyState(store, { ...state, steps: 1_000_000_000, time: 5e7 });
  assert.ok(performance.now() - began < 3_000);
  assert.equal(store.length.value, 1);
});

test("another run begun meanwhile is left alone", async () => {
  const state = stateAfter(10);
  const opening = applyState(store, { ...state, steps: 500_000, time: 25_000 });
  store.setSpec(preset("circle").spec, "circle");
  await opening;
  assert.equal(store.preset.value, "circle");
  assert.equal(store.frame.value.time, 0);
});

test("camera and colours come back with a link", async () => {
  const camera = { stage: "circle" as const, position: [0, 0, 3], target: [0, 0, 0] };
  await applyState(store, { ...stateAfter(5), camera, slots: [3, 1] });
  assert.deepEqual(store.camera.value, camera);
  assert.deepEqual(store.slots.value, [3, 1]);
  await followHash(store, "#preset=sphere");
  assert.equal(store.camera.value, null);
});

test("a chosen preset is an address to come back to, once", () => {
  visitPreset(store, preset("circle"));
  visitPreset(store, preset("circle"));
  visitPreset(store, preset("sphere"));
  assert.deepEqual(pushed, ["#preset=circle", "#preset=sphere"]);
  const notebook = createStore({ mode: "notebook", version: "test", replays: [] });
  visitPreset(notebook, preset("noise"));
  notebook.dispose();
  assert.equal(pushed.length, 2);
});

test("a cell of a sweep at time 0 shows the start", () => {
  const sweep: SweepReplay = {
    kind: "sweep",
    title: "sweep",
    says: "",
    rows: { name: "beta", values: [1, 2] },
    columns: { name: "time", values: [0, 5] },
    statistics: [{ name: "clusters", values: pack(new Float64Array(4), [2, 2]) }],
    spec: preset("circle").spec,
  };
  store.open(sweep);
  store.watchCell(1, 0);
  assert.equal(store.playing.value, false);
  assert.equal(store.spec.value.solve.t1, preset("circle").spec.solve.t1);
  store.watchCell(1, 1);
  assert.equal(store.playing.value, true);
  assert.equal(store.spec.value.solve.t1, 5);
});
