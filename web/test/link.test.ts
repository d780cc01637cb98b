// A link brings the very same numbers back; a damaged one gives a sentence and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { carriesTokens, decodeHash, encodeState, type LinkState } from "../src/app/link.ts";
import { startTokens } from "../src/physics/start.ts";
import { PRESETS } from "../src/presets/index.ts";
import { stageOf } from "../src/scene/geometry.ts";
import { dimension, spaceOf, stepOf } from "../src/spec/size.ts";
import type { Spec } from "../src/spec/types.ts";

function stateOf(spec: Spec, change: Partial<LinkState> = {}): LinkState {
  const frame = { ...startTokens(spec), time: 1.7 };
  return {
    spec,
    preset: null,
    time: frame.time,
    steps: 34,
    edited: true,
    colouring: "attention",
    selected: 1,
    logTime: true,
    speed: 5,
    camera: { stage: stageOf(spaceOf(spec), dimension(spec)), position: [1.5, -2, 4], target: [0, 0.25, 0] },
    slots: [1, 0, 4],
    frame,
    ...change,
  };
}

async function reopened(state: LinkState): Promise<LinkState> {
  const opened = await decodeHash(await encodeState(state));
  assert.ok(opened !== null && "state" in opened);
  return opened.state;
}

/** A link with any header and any bytes after it, as an attacker would write it. */
function forged(header: unknown, rest: Uint8Array = new Uint8Array()): string {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = Buffer.alloc(4 + text.length + rest.length);
  bytes.writeUInt32LE(text.length);
  bytes.set(text, 4);
  bytes.set(rest, 4 + text.length);
  return `#state=p${bytes.toString("base64url")}`;
}

test("round trip is exact for every preset", async () => {
  for (const { spec } of PRESETS) {
    const state = stateOf(spec);
    assert.deepEqual(await reopened(state), state);
    const bare = stateOf(spec, { frame: null, steps: 0, time: 0, edited: false, selected: null });
    assert.deepEqual(await reopened(bare), bare);
  }
});

test("radii and awkward numbers come back bit by bit", async () => {
  const { spec } = PRESETS.find(({ id }) => id === "pre-ln")!;
  const state = stateOf(spec);
  const radii = Float64Array.from({ length: 64 }, (_, k) => Math.PI * 10 ** (k - 30));
  const found = await reopened({ ...state, frame: { ...state.frame!, radii } });
  assert.deepEqual(found.frame!.radii, radii);
  const odd: Spec = { ...spec, title: 'ü "</script>"', solve: { t1: 1e-9 + 1, method: "fixed", dt: 0.1 + 0.2 - 0.29, seed: 2 ** 53 - 1 } };
  assert.deepEqual((await reopened(stateOf(odd))).spec, odd);
});

test("a start is told by its spec alone, in few characters", async () => {
  const { spec } = PRESETS[0]!;
  const link = await encodeState(stateOf(spec, { frame: null, steps: 0, edited: false }));
  assert.ok(link.length < 700, String(link.length));
});

test("tokens travel when they must", () => {
  assert.equal(carriesTokens(0, false, 64), false);
  assert.equal(carriesTokens(1, false, 64), true);
  assert.equal(carriesTokens(1, false, 513), false);
  assert.equal(carriesTokens(0, true, 4096), true);
});

test("addresses that ask for nothing, and presets", async () => {
  assert.equal(await decodeHash(""), null);
  assert.equal(await decodeHash("#section-2"), null);
  assert.deepEqual(await decodeHash("#preset=metastability"), { preset: "metastability" });
});

test("damaged links are refused with a sentence", async () => {
  const { spec } = PRESETS[0]!;
  const good = await encodeState(stateOf(spec));
  const { frame: _, ...said } = stateOf(spec);
  const header = { ...said, tokens: false, radii: false };
  const numbers = (count: number, value: number): Uint8Array<ArrayBuffer> => new Uint8Array(new Float64Array(count).fill(value).buffer);
  const damaged = [
    "#state=",
    "#state=q123",
    "#state=z!!!!",
    "#state=zAAAA",
    "#state=p",
    "#state=p____",
    good.slice(0, 60),
    good.slice(0, -9),
    `#state=p${"A".repeat(2_000_000)}`,
    forged("{"),
    forged("null"),
    forged([]),
    forged({ spec: null }),
    forged({ spec: { model: {} } }),
    forged({ ...header, spec: { ...spec, tokens: { ...spec.tokens, n: 1e9 } } }),
    forged({ ...header, spec: { ...spec, model: { ...spec.model, beta: "9" } } }),
    forged({ ...header, steps: 1e12 }),
    forged({ ...header, steps: -1 }),
    forged({ ...header, time: null }),
    forged({ ...header, tokens: true }, numbers(3, 1)),
    forged({ ...header, tokens: true }, numbers(64 * 3, Number.NaN)),
    forged({ ...header, tokens: true }, numbers(64 * 3, 7)),
  ];
  for (const link of damaged) {
    await assert.rejects(decodeHash(link), (error: Error) => error.message.length > 8, link.slice(0, 80));
  }
});

test("what a link may not set falls back to what is harmless", async () => {
  const { frame: _, ...said } = stateOf(PRESETS[0]!.spec);
  const strange = { ...said, tokens: false, radii: false, colouring: "<b>", selected: 1e9, speed: -3, preset: { a: 1 }, edited: "yes" };
  const opened = await decodeHash(forged(strange));
  assert.ok(opened !== null && "state" in opened);
  const { colouring, selected, speed, preset, edited } = opened.state;
  assert.deepEqual({ colouring, selected, speed, preset, edited }, { colouring: "cluster", selected: null, speed: 1, preset: null, edited: false });
});

test("links from before cameras and colours still open", async () => {
  const { frame: _, camera: __, slots: ___, ...said } = stateOf(PRESETS[0]!.spec);
  const opened = await decodeHash(forged({ ...said, tokens: false, radii: false }));
  assert.ok(opened !== null && "state" in opened);
  assert.equal(opened.state.camera, null);
  assert.deepEqual(opened.state.slots, []);
});

test("a camera or colours that make no sense are left out", async () => {
  const state = stateOf(PRESETS[0]!.spec);
  const { frame: _, ...said } = state;
  const good = state.camera!;
  const cameras = [7, "home", { ...good, stage: "plane" }, { ...good, position: [1, 2] }, { ...good, target: [0, 0, 1e9] }, { ...good, position: [null, "a", 0] }];
  for (const camera of cameras) {
    const opened = await decodeHash(forged({ ...said, camera, slots: [0, -4, "a"], tokens: false, radii: false }));
    assert.ok(opened !== null && "state" in opened);
    assert.equal(opened.state.camera, null, JSON.stringify(camera));
    assert.deepEqual(opened.state.slots, []);
  }
});

test("a preset's name stands over its own settings only", async () => {
  const { id, spec } = PRESETS[0]!;
  const name = async (preset: string, other: Spec): Promise<string | null> => (await reopened(stateOf(other, { preset }))).preset;
  assert.equal(await name(id, spec), id);
  assert.equal(await name(id, { ...spec, solve: { ...spec.solve, t1: 17 } }), id, "a later end is no other run");
  assert.equal(await name(id, { ...spec, model: { ...spec.model, beta: 0.5 } }), null);
  assert.equal(await name(id, { ...spec, says: "something else" }), null);
  assert.equal(await name("no-such", spec), null);
});

test("the time of a link is that of its steps", async () => {
  const { spec } = PRESETS[0]!;
  const at = (time: number, edited: boolean) => reopened(stateOf(spec, { time, edited, frame: null, steps: 100 }));
  assert.equal((await at(100 * stepOf(spec), false)).time, 100 * stepOf(spec));
  assert.equal((await at(3, true)).time, 3, "the step was changed on the way");
  await assert.rejects(at(3, false), /steps/);
  await assert.rejects(at(1e9, true), /time/);
});

test("a small link cannot unfold into a huge one", async () => {
  const stream = new Blob([new Uint8Array(50_000_000)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bomb = Buffer.from(await new Response(stream).arrayBuffer());
  await assert.rejects(decodeHash(`#state=z${bomb.toString("base64url")}`));
});

test("R^d is not asked to lie on a sphere", async () => {
  const { spec } = PRESETS.find(({ id }) => id === "polytope")!;
  assert.equal(spaceOf(spec), "euclidean");
  assert.deepEqual(await reopened(stateOf(spec)), stateOf(spec));
});
