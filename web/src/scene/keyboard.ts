// The scene from the keyboard: arrows turn it, plus and minus zoom, brackets go through the tokens.
import type { Vector3 } from "three";
import type { Store } from "../app/contract.ts";
import type { Viewpoint } from "./viewpoint.ts";

const STEP = Math.PI / 36;
const ZOOM = 1.15;

export const KEYS_HELP =
  "Arrow keys turn the view, plus and minus zoom, 0 resets it; [ and ] choose the previous and the next token, Shift and an arrow key move it, Escape lets it go.";

/** True when the key meant something here; the page then does not use it for anything else. */
export function pressKey(key: string, view: Viewpoint, store: Store): boolean {
  const actions: Record<string, () => void> = {
    ArrowLeft: () => view.turn(-STEP, 0),
    ArrowRight: () => view.turn(STEP, 0),
    ArrowUp: () => view.turn(0, -STEP),
    ArrowDown: () => view.turn(0, STEP),
    "+": () => view.zoom(ZOOM),
    "=": () => view.zoom(ZOOM),
    "-": () => view.zoom(1 / ZOOM),
    _: () => view.zoom(1 / ZOOM),
    "0": () => view.reset(),
    "[": () => chooseNext(store, -1),
    "]": () => chooseNext(store, 1),
  };
  if (key === "Escape" && store.selected.peek() !== null) actions["Escape"] = () => (store.selected.value = null);
  const action = actions[key];
  action?.();
  return action !== undefined;
}

/**
 * A place one step further along an arrow of the screen: on the unit sphere (`extent` null) by an angle, and
 * elsewhere by a share of the extent. Where the arrow points straight out of the sphere the place stays.
 */
export function nudged(place: Vector3, key: string, axes: { right: Vector3; up: Vector3 }, extent: number | null): Vector3 {
  const arrow = (key === "ArrowLeft" || key === "ArrowRight" ? axes.right : axes.up).clone();
  if (key === "ArrowLeft" || key === "ArrowDown") arrow.negate();
  if (extent !== null) return place.clone().addScaledVector(arrow, STEP * extent);
  const along = arrow.addScaledVector(place, -arrow.dot(place));
  if (along.length() < 1e-6) return place.clone();
  return place.clone().multiplyScalar(Math.cos(STEP)).addScaledVector(along.normalize(), Math.sin(STEP)).normalize();
}

function chooseNext(store: Store, step: number): void {
  const count = store.n.peek();
  const present = store.selected.peek();
  const first = step > 0 ? 0 : count - 1;
  store.selected.value = present === null ? first : (present + step + count) % count;
}
