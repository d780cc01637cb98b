// Tokens are drawn from back to front, so that soft edges blend as they should.
import { isFlat } from "./geometry.ts";
import type { Viewpoint } from "./viewpoint.ts";

/** Indices of tokens, farthest first. In the plane nothing hides anything: the given order. */
export function backToFront(world: Float32Array, count: number, view: Viewpoint): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  if (isFlat(view.stage)) return order;
  const { x, y, z } = view.camera.position;
  const nearness = new Float32Array(count);
  for (let i = 0; i < count; i += 1) nearness[i] = x * world[3 * i]! + y * world[3 * i + 1]! + z * world[3 * i + 2]!;
  return order.sort((a, b) => nearness[a]! - nearness[b]!);
}

/** How much of its colour a token keeps: 1 in front, less on the far side, the rest is background. */
export function clarity(facing: number): number {
  const share = Math.min(1, Math.max(0, (facing + 0.45) / 0.75));
  return 0.34 + 0.66 * share * share * (3 - 2 * share);
}
