// What the scene computes before it draws.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterColours, inheritSlots } from "../src/scene/clusterColours.ts";
import { colourTokens } from "../src/scene/colours.ts";
import { describeScene } from "../src/scene/describe.ts";
import { convexHull, nextExtent, niceAbove, stageOf, ticks, tokenRadius, toWorld } from "../src/scene/geometry.ts";
import { nudged } from "../src/scene/keyboard.ts";
import { placeLabels, tokenName } from "../src/scene/labels.ts";
import { clarity } from "../src/scene/order.ts";
import { categorical, cividis, type Colour, fromHex, toCss, viridis } from "../src/scene/palette.ts";
import { Vector3 } from "three";
import { TrailKeeper } from "../src/scene/trails.ts";

/** Relative luminance (WCAG 2.2). */
function luminance(colour: Colour): number {
  const [r, g, b] = colour.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

test("colours go from hex to css and back", () => {
  assert.equal(toCss(fromHex("#E69F00")), "rgb(230, 159, 0)");
  assert.equal(toCss(fromHex("000000"), 0.5), "rgba(0, 0, 0, 0.5)");
});

test("the first 24 clusters have different colours, in both themes", () => {
  for (const dark of [false, true]) {
    const colours = Array.from({ length: 24 }, (_, slot) => toCss(categorical(slot, dark)));
    assert.equal(new Set(colours).size, 24);
  }
});

test("sequential maps become lighter all the way, so they work without colour", () => {
  for (const map of [viridis, cividis]) {
    for (let i = 1; i <= 20; i += 1) assert.ok(luminance(map(i / 20)) > luminance(map((i - 1) / 20)));
    assert.deepEqual(map(Number.NaN), map(0));
    assert.deepEqual(map(7), map(1));
  }
});

test("clusters keep their colours when they swap ranks", () => {
  const keeper = new ClusterColours();
  const first = keeper.assign(Int32Array.of(0, 0, 0, 1, 1, 2), [3, 2, 1]);
  assert.deepEqual([...first], [0, 0, 0, 1, 1, -1]);
  // The lone token joins the second cluster, and two tokens leave the first.
  const second = keeper.assign(Int32Array.of(1, 1, 2, 0, 0, 0), [3, 2, 1]);
  assert.deepEqual([...second], [0, 0, -1, 1, 1, 1]);
});

test("colours of clusters can be taken elsewhere", () => {
  const labels = Int32Array.of(0, 0, 0, 1, 1, 2);
  const keeper = new ClusterColours();
  keeper.adopt(labels, [5, 2]);
  assert.deepEqual([...keeper.assign(labels, [3, 2, 1])], [5, 5, 5, 2, 2, -1]);
  assert.deepEqual(keeper.ofClusters(labels, 2), [5, 2]);
  assert.deepEqual(keeper.ofClusters(Int32Array.of(0), 1), [], "of another run");
});

test("arrows move a token along its space", () => {
  const axes = { right: new Vector3(1, 0, 0), up: new Vector3(0, 1, 0) };
  const on = nudged(new Vector3(0, 0, 1), "ArrowRight", axes, null);
  assert.ok(on.x > 0.08 && Math.abs(on.y) < 1e-12 && Math.abs(on.length() - 1) < 1e-12);
  assert.ok(nudged(new Vector3(0, 0, 1), "ArrowDown", axes, null).y < -0.08);
  assert.deepEqual(nudged(new Vector3(1, 0, 0), "ArrowRight", axes, null), new Vector3(1, 0, 0), "at the rim it stays");
  const free = nudged(new Vector3(1, 2, 3), "ArrowUp", axes, 10);
  assert.ok(free.x === 1 && free.y > 2.8 && free.z === 3);
});

test("a merged cluster takes the colour of its larger part, a split one keeps it once", () => {
  assert.deepEqual(inheritSlots(Int32Array.of(0, 0, 0, 0, 0), [5], Int32Array.of(4, 4, 2, 2, 2)), [2]);
  assert.deepEqual(inheritSlots(Int32Array.of(0, 0, 0, 1, 1), [3, 2], Int32Array.of(3, 3, 3, 3, 3)), [3, 0]);
});

test("a cluster that only had a shade gets a hue once one is free", () => {
  assert.deepEqual(inheritSlots(Int32Array.of(0, 0, 1, 1), [2, 2], Int32Array.of(0, 0, 9, 9)), [0, 1]);
});

test("without a chosen token, colouring by attention says what to do", () => {
  const inputs = { count: 3, labels: new Int32Array(3), sizes: [3], keeper: new ClusterColours(), dark: false };
  const attention = (index: number) => Float32Array.of(0.1, 0.2, index === 1 ? 0.7 : 0);
  const asked = colourTokens({ ...inputs, colouring: "attention", selected: null, attention });
  assert.equal(asked.legend.kind, "hint");
  const shown = colourTokens({ ...inputs, colouring: "attention", selected: 1, attention });
  assert.deepEqual(shown.legend, { kind: "attention", most: Math.fround(0.7), token: 1 });
  cividis(1).forEach((part, i) => assert.ok(Math.abs(shown.colours[6 + i]! - part) < 1e-6));
});

test("spaces and dimensions have their stages", () => {
  const stages = (["sphere", "euclidean"] as const).flatMap((space) => [2, 3].map((d) => stageOf(space, d)));
  assert.deepEqual(stages, ["circle", "sphere", "plane", "box"]);
});

test("points of the plane get a third coordinate and the scale of the view", () => {
  assert.deepEqual([...toWorld({ points: Float64Array.of(1, 2, -3, 4) }, 2, 4)], [0.25, 0.5, 0, -0.75, 1, 0]);
  assert.deepEqual([...toWorld({ points: Float64Array.of(1, 2, -3) }, 3, 1)], [1, 2, -3]);
});

test("round numbers are found from above", () => {
  assert.deepEqual([0.3, 1, 1.01, 4, 7, 99].map((value) => niceAbove(value)), [0.5, 1, 2, 5, 10, 100]);
  assert.equal(niceAbove(0), 1);
  assert.equal(niceAbove(Number.NaN), 1);
});

test("the view of the plane grows at once and shrinks late", () => {
  const start = nextExtent(null, 1.2);
  assert.equal(start, 1.5);
  assert.equal(nextExtent(start, 1.6), 2);
  assert.equal(nextExtent(2, 1.1), 2);
  assert.equal(nextExtent(2, 0.8), 1);
  assert.equal(nextExtent(2, 0), 2);
});

test("ticks are round and inside", () => {
  assert.deepEqual(ticks(-1, 1, 4), [-1, -0.5, 0, 0.5, 1]);
  assert.deepEqual(ticks(3, 3, 4), []);
});

test("the convex hull is the boundary, once around", () => {
  const square = Float64Array.of(0, 0, 2, 0, 1, 1, 2, 2, 0, 2, 1, 0);
  assert.deepEqual(convexHull(square), [0, 1, 3, 4]);
  assert.equal(convexHull(Float64Array.of(0, 0, 1, 1)).length, 2);
});

test("many tokens are drawn smaller than few, and none vanish", () => {
  assert.ok(tokenRadius(2, 600) > tokenRadius(1000, 600));
  assert.ok(tokenRadius(4096, 300) >= 1.8);
});

test("tokens in front keep their colour, those behind only part of it", () => {
  assert.equal(clarity(1), 1);
  assert.ok(clarity(-1) > 0.3 && clarity(-1) < 0.4);
});

test("labels do not cover each other; the chosen one is always written", () => {
  const view = { width: 200, height: 100 };
  const crowd = Array.from({ length: 30 }, (_, i) => ({ text: `t${i}`, x: 100, y: 50, gap: 8, rank: 2 }));
  const chosen = { text: "chosen", x: 100, y: 50, gap: 8, rank: 0 };
  const placed = placeLabels([...crowd, chosen], () => 40, view);
  assert.equal(placed[0]!.text, "chosen");
  assert.equal(placed.length, 4);
  for (const [i, a] of placed.entries()) {
    for (const b of placed.slice(i + 1)) assert.ok(Math.abs(a.x - b.x) >= 40 || Math.abs(a.y - b.y) >= 15);
  }
  const outside = placeLabels([{ ...chosen, x: 500 }], () => 40, view);
  assert.equal(outside.length, 1);
  assert.equal(placeLabels([{ ...crowd[0]!, x: 500 }], () => 40, view).length, 0);
});

test("tokens are called by their text, else by their number from 1", () => {
  assert.equal(tokenName(0, null), "token 1");
  assert.equal(tokenName(1, ["a", " fox"]), "fox");
  assert.equal(tokenName(0, [" \n"]), "␣↵");
  assert.equal(tokenName(0, [""]), "token 1");
});

test("trails follow time forward and start anew when it jumps", () => {
  const keeper = new TrailKeeper();
  const colours = Float32Array.of(1, 0, 0);
  const [start, next] = [Float32Array.of(0, 0, 1), Float32Array.of(0, 0.25, 1)];
  keeper.add(0, start);
  assert.equal(keeper.pieces(colours), null);
  keeper.add(1, next);
  keeper.add(1, Float32Array.of(9, 9, 9));
  assert.deepEqual([...keeper.pieces(colours)!.ends], [...next, ...start]);
  keeper.add(2, Float32Array.of(0, 0.75, 1));
  assert.equal(keeper.pieces(colours), null, "far in one frame");
  keeper.add(3, Float32Array.of(0, 0.8, 1));
  assert.notEqual(keeper.pieces(colours), null);
  keeper.add(0.5, Float32Array.of(0, 0.8, 1));
  assert.equal(keeper.pieces(colours), null, "back in time");
});

test("the scene can be heard", () => {
  const scene = { title: "Model SA, beta 9", stage: "circle", count: 64, time: 3.20001, clock: "time", clusters: 4, largest: 20 } as const;
  assert.equal(describeScene(scene), "Model SA, beta 9: 64 tokens on the circle at time 3.20, 4 clusters, the largest of 20 tokens.");
  assert.match(describeScene({ ...scene, clock: "layer", time: 7, clusters: 1 }), /at layer 7, 1 cluster\.$/);
});
