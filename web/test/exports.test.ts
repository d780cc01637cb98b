// What leaves the page: a video is made of the run as it was, and a spec is given only where it gives what is shown.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Store } from "../src/app/contract.ts";
import { createStore } from "../src/app/store.ts";
import { shownSpec, specProblem } from "../src/export/spec.ts";
import { attentionMatrix } from "../src/observe/index.ts";
import { findPreset } from "../src/presets/index.ts";
import type { RunReplay } from "../src/replay/types.ts";
import { withBeta, withCount } from "../src/spec/edit.ts";
import type { Spec } from "../src/spec/types.ts";
import { display, useScreen } from "./screen.ts";

let store: Store;

beforeEach(() => {
  useScreen();
  store = createStore({ mode: "static", version: "test", replays: [] });
});
afterEach(() => store.dispose());

test("while a film is shown nothing changes the run, and afterwards all is as it was", () => {
  for (let k = 0; k < 12; k++) store.stepOnce();
  store.show(7);
  store.playing.value = true;
  const { spec, frame, length } = { spec: store.spec.value, frame: store.frame.value, length: store.length.value };
  const film = store.film();
  assert.equal(film.length, 13);
  film.show(4);
  const times = store.track.value.times;
  assert.equal(store.frame.value.time, times[4]);
  const tries: (() => void)[] = [
    () => store.playFromHere(),
    () => store.stepOnce(),
    () => store.restart(),
    () => store.show(0),
    () => store.changeModel((given) => withCount(given, 5)),
    () => store.setSpec(findPreset("sphere")!.spec, "sphere"),
    () => store.dragToken(0, [1, 0]),
    () => store.open(replayOf(null)),
    () => (store.wantedBackend.value = "js"),
    () => (store.playing.value = true),
  ];
  for (const attempt of tries) {
    attempt();
    display(2);
    assert.deepEqual([store.frame.value.time, store.length.value, store.spec.value], [times[4], length, spec]);
  }
  assert.match(store.message.value!, /video is being made/);
  film.end();
  assert.deepEqual([store.frame.value, store.length.value, store.playing.value], [frame, length, true]);
  assert.deepEqual([store.locked.value, store.message.value], [false, null]);
});

test("a film keeps its moments whatever becomes of the run", () => {
  for (let k = 0; k < 6; k++) store.stepOnce();
  const { points } = store.frame.value;
  const film = store.film();
  film.end();
  store.restart();
  film.show(6);
  assert.deepEqual(store.frame.value.points, points);
  film.end();
  assert.equal(store.frame.value.time, 0);
});

test("no spec is given of an edited run that cannot begin from its tokens alone", () => {
  const edit = (spec: Spec): void => {
    store.setSpec(spec);
    for (let k = 0; k < 3; k++) store.stepOnce();
    store.changeModel((given) => withBeta(given, 3));
    assert.equal(store.edited.value, true);
  };
  const { spec } = findPreset("circle")!;
  const normalised = (scheme: "pre" | "sqrt"): Spec => ({ ...spec, model: { ...spec.model, normalisation: { scheme } as never } });
  edit(spec);
  assert.equal(specProblem(store), null);
  assert.equal(shownSpec(store).tokens.law, "points");
  edit(normalised("pre"));
  assert.match(specProblem(store)!, /radii/);
  edit(normalised("sqrt"));
  assert.match(specProblem(store)!, /depends on the time/);
  store.restart();
  assert.equal(specProblem(store), null);
});

test("a stored run with its spec has attention and a TOML; without, it says why", () => {
  for (let k = 0; k < 3; k++) store.stepOnce();
  const spec = store.spec.value;
  const { frame } = store;
  const expected = attentionMatrix(spec, frame.value, 8).values;
  store.open(store.recorded());
  store.show(3);
  assert.deepEqual(store.known.value, spec);
  assert.deepEqual(attentionMatrix(store.known.value as Spec, frame.value, 8).values, expected);
  assert.equal(specProblem(store), null);
  assert.deepEqual(shownSpec(store), spec);
  store.open(replayOf(null));
  assert.match(specProblem(store)!, /without its spec/);
  assert.throws(() => shownSpec(store), /without its spec/);
  store.open({ ...replayOf(spec), kind: "trace" });
  assert.match(specProblem(store)!, /trained network/);
  store.open(replayOf(withCount(spec, 5)));
  assert.match(specProblem(store)!, /other tokens/);
});

function replayOf(spec: Spec | null): RunReplay {
  return { ...store.recorded(), kind: "run", spec };
}
