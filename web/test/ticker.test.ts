// Frames per second are frames over time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTicker } from "../src/app/ticker.ts";

test("slow frames count for the time they take", () => {
  let turn: FrameRequestCallback = () => undefined;
  globalThis.requestAnimationFrame = (call) => ((turn = call), 1);
  const ticker = makeTicker(() => undefined);
  ticker.run(true);
  let now = performance.now();
  // Two in 100 ms: 20 a second. The mean of 1000 / 10 and 1000 / 90 would say 56.
  for (let k = 0; k < 400; k++) turn((now += k % 2 === 0 ? 10 : 90));
  assert.ok(Math.abs(ticker.fps.value - 20) < 2, String(ticker.fps.value));
});
