// Pointing, choosing and dragging tokens, by mouse, pen or finger. What is not on a token is left to the camera.
import { Vector3 } from "three";
import { isInFront } from "./overlay.ts";
import { pointUnder } from "./unproject.ts";
import type { Viewpoint } from "./viewpoint.ts";

export interface PointerTarget {
  world(): Float32Array;
  radius(): number;
  canDrag(): boolean;
  hover(index: number | null): void;
  choose(index: number): void;
  drag(index: number, place: Vector3): void;
  release(): void;
}

interface Grip {
  pointer: number;
  index: number;
  front: boolean;
  startX: number;
  startY: number;
  moved: boolean;
}

const CLICK_SLACK = 4; // pixels a click may tremble
const MOUSE_REACH = 6;
const FINGER_REACH = 18;

/** Listens on `element`; must be called before the camera's own listeners are added. Returns its undoing. */
export function listenToPointer(element: HTMLElement, view: Viewpoint, target: PointerTarget): () => void {
  const listeners = new AbortController();
  const { signal } = listeners;
  let grip: Grip | null = null;

  const locate = (event: PointerEvent): [number, number] => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const reachOf = (event: PointerEvent) =>
    target.radius() + (event.pointerType === "touch" ? FINGER_REACH : MOUSE_REACH);

  const down = (event: PointerEvent): void => {
    if (event.button !== 0 || grip !== null) return;
    const [x, y] = locate(event);
    const index = nearestToken(view, target.world(), x, y, reachOf(event));
    if (index === null) return;
    // Where tokens cannot be moved, a drag that starts on one turns the view as any other.
    if (target.canDrag()) {
      view.freeze(true);
      element.setPointerCapture(event.pointerId);
    }
    const front = isInFront(view, target.world(), index);
    grip = { pointer: event.pointerId, index, front, startX: x, startY: y, moved: false };
  };
  const move = (event: PointerEvent): void => {
    const [x, y] = locate(event);
    if (grip === null) {
      if (event.buttons !== 0 || event.pointerType === "touch") return;
      const index = nearestToken(view, target.world(), x, y, reachOf(event));
      element.style.cursor = index === null ? "grab" : "pointer";
      target.hover(index);
      return;
    }
    if (event.pointerId !== grip.pointer) return;
    if (!grip.moved && Math.hypot(x - grip.startX, y - grip.startY) <= CLICK_SLACK) return;
    if (!target.canDrag()) {
      grip = null;
      return;
    }
    grip.moved = true;
    element.style.cursor = "grabbing";
    const from = new Vector3().fromArray(target.world(), 3 * grip.index);
    target.drag(grip.index, pointUnder(view, x, y, from, grip.front));
  };
  const up = (event: PointerEvent): void => {
    if (grip === null || event.pointerId !== grip.pointer) return;
    const { index, moved } = grip;
    letGo();
    if (!moved && event.type === "pointerup") target.choose(index);
  };
  const letGo = (): void => {
    if (grip?.moved === true) target.release();
    grip = null;
    view.freeze(false);
    element.style.cursor = "grab";
  };

  element.addEventListener("pointerdown", down, { signal });
  element.addEventListener("pointermove", move, { signal });
  element.addEventListener("pointerup", up, { signal });
  element.addEventListener("pointercancel", up, { signal });
  element.addEventListener("pointerleave", () => target.hover(null), { signal });
  return () => {
    letGo();
    listeners.abort();
  };
}

/** The token under the pointer; one in front is preferred to one on the far side. */
export function nearestToken(
  view: Viewpoint,
  world: Float32Array,
  x: number,
  y: number,
  reach: number,
): number | null {
  let best: number | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < world.length / 3; i += 1) {
    const place = view.project(world[3 * i]!, world[3 * i + 1]!, world[3 * i + 2]!);
    const away = Math.hypot(place.x - x, place.y - y);
    if (away > reach) continue;
    const score = away + (isInFront(view, world, i) ? 0 : 2 * reach) + 0.01 * place.depth;
    if (score < least) {
      least = score;
      best = i;
    }
  }
  return best;
}
