// Somebody who moves every control, in any order, while it runs: nothing breaks, and every state has a link.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store } from "../src/app/contract.ts";
import { edit } from "../src/app/controls/edit.ts";
import { lawsFor, startOf } from "../src/app/controls/starts.ts";
import { fromHere } from "../src/app/exact.ts";
import { decodeHash, encodeState } from "../src/app/link.ts";
import { stateOf } from "../src/app/opening.ts";
import { createStore } from "../src/app/store.ts";
import { PRESETS } from "../src/presets/index.ts";
import { RELU_PERCEPTRON } from "../src/presets/mechanisms.ts";
import { validate } from "../src/spec/bounds.ts";
import * as change from "../src/spec/edit.ts";
import type { Spec } from "../src/spec/types.ts";

const MOVES = 400;

/** Park and Miller's generator: the same wandering every time. */
function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

/** One control moved at random. */
function move(random: () => number): (spec: Spec) => Spec {
  const pick = <T>(...options: T[]): T => options[Math.floor(random() * options.length)] as T;
  const u = random();
  return pick<(spec: Spec) => Spec>(
    (spec) => change.withModel(spec, pick("SA", "USA", "CausalSA", "HardmaxFlow", "RescaledSA")),
    (spec) => change.withBeta(spec, 10 ** (3 * u - 1)),
    (spec) => change.withConvention(spec, pick("perspective", "metastability")),
    (spec) => change.withCount(spec, 2 + Math.floor(40 * u)),
    (spec) => change.withDimension(spec, pick(2, 3)),
    (spec) => change.withSeed(spec, Math.floor(1000 * u)),
    (spec) => change.withStart(spec, startOf(spec, pick(...lawsFor(spec).map(([law]) => law)))),
    (spec) => change.withValues(spec, pick("identity", "minus", "diagonal", "random")),
    (spec) => change.withPerceptron(spec, pick(null, { ...RELU_PERCEPTRON, scale: 4 * u })),
    (spec) => change.withNoise(spec, pick(null, 2 * u)),
    (spec) => change.withStep(spec, 10 ** (-3 * u)),
    (spec) => change.withEnd(spec, 10 ** (6 * u - 2)),
    (spec) => change.withMethod(spec, pick("fixed", "layers")),
    (spec) => change.withNormalisation(spec, pick(null, { scheme: pick("pre", "mix", "peri", "ngpt", "sqrt") })),
    () => pick(...PRESETS.filter(({ id }) => id !== "modes")).spec,
  );
}

async function check(store: Store, at: string): Promise<void> {
  const spec = store.spec.peek();
  const { points } = store.frame.peek();
  assert.deepEqual(validate(spec), [], at);
  assert.ok(points.every(Number.isFinite), at);
  assert.equal(points.length, store.n.peek() * store.d.peek(), at);
  assert.equal(store.measured.peek().labels.length, store.n.peek(), at);
  const opened = await decodeHash(await encodeState(stateOf(store)));
  assert.deepEqual(opened, { state: stateOf(store) }, at);
  if (store.space.peek() === "sphere") assert.deepEqual(validate(fromHere(spec, store.frame.peek(), store.d.peek())), [], at);
}

test("four hundred moves", async () => {
  const random = generator(20240917);
  const store = createStore({ mode: "static", version: "test", replays: [] });
  const models = new Set<string>();
  let changed = 0;
  for (let k = 0; k < MOVES; k++) {
    const before = JSON.stringify(store.spec.peek());
    edit(store, move(random));
    models.add(store.spec.peek().model.name);
    if (JSON.stringify(store.spec.peek()) !== before) changed += 1;
    if (random() < 0.7) store.stepOnce();
    if (random() < 0.2) store.show(Math.floor(random() * store.length.peek()));
    if (random() < 0.1) {
      store.dragToken(0, [...store.frame.peek().points.slice(-store.d.peek())]);
      store.releaseToken();
    }
    await check(store, `move ${k} from ${before} to ${JSON.stringify(store.spec.peek())}`);
  }
  store.dispose();
  assert.equal(models.size, 5);
  assert.ok(changed > MOVES / 2, `${changed} moves did something`);
});
