// The scene from the keyboard: arrows turn it, plus and minus zoom, brackets go through the tokens.
import type { Store } from "../app/contract.ts";
import type { Viewpoint } from "./viewpoint.ts";

const STEP = Math.PI / 36;
const ZOOM = 1.15;

export const KEYS_HELP =
  "Arrow keys turn the view, plus and minus zoom, 0 resets it; [ and ] choose the previous and the next token, Escape lets it go.";

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

function chooseNext(store: Store, step: number): void {
  const count = store.n.peek();
  const present = store.selected.peek();
  const first = step > 0 ? 0 : count - 1;
  store.selected.value = present === null ? first : (present + step + count) % count;
}
