// What a view shows first, and how links and presets get into the store.
import { batch } from "@preact/signals";
import { findPreset, PRESETS } from "../presets/index.ts";
import type { Preset } from "../presets/types.ts";
import type { CaughtUp, Store } from "./contract.ts";
import { LOCKED } from "./film.ts";
import { carriesTokens, decodeHash, encodeState, type LinkState } from "./link.ts";
import { prefersStillness } from "./theme.ts";

/** Show a preset from its start, and play it. */
export function choosePreset(store: Store, preset: Preset, play = !prefersStillness()): void {
  batch(() => {
    store.playing.value = false;
    store.sweep.value = null;
    store.setSpec(preset.spec, preset.id);
    store.speed.value = preset.speed;
    store.colouring.value = preset.colouring ?? "cluster";
    store.logTime.value = preset.logTime ?? false;
    store.selected.value = null;
    store.camera.value = null;
    store.playing.value = play;
  });
}

/** The same as a place to come back to: it gets the address, and Back leads to the one before. */
export function visitPreset(store: Store, preset: Preset): void {
  choosePreset(store, preset);
  const hash = `#preset=${preset.id}`;
  // The address of a notebook is not the page's; and the choice may have been refused.
  if (store.options.mode === "notebook" || store.preset.peek() !== preset.id || location.hash === hash) return;
  history.pushState(null, "", hash);
}

/** The address that brings this very state back. */
export async function linkOf(store: Store): Promise<string> {
  const place = location.href.replace(/#.*$/, "");
  return place + (await hashOf(store));
}

async function hashOf(store: Store): Promise<string> {
  const state = stateOf(store);
  const preset = findPreset(state.preset ?? "");
  const asGiven =
    preset !== undefined &&
    JSON.stringify(state.spec) === JSON.stringify(preset.spec) &&
    state.steps === 0 &&
    state.camera === null &&
    !state.edited &&
    state.selected === null &&
    state.colouring === (preset.colouring ?? "cluster") &&
    state.logTime === (preset.logTime ?? false) &&
    state.speed === preset.speed;
  return asGiven ? `#preset=${preset.id}` : encodeState(state);
}

export function stateOf(store: Store): LinkState {
  const frame = store.frame.peek();
  const steps = store.stepsShown.peek();
  const edited = store.edited.peek();
  return {
    spec: store.spec.peek(),
    preset: store.preset.peek(),
    time: frame.time,
    steps,
    edited,
    colouring: store.colouring.peek(),
    selected: store.selected.peek(),
    logTime: store.logTime.peek(),
    speed: store.speed.peek(),
    camera: store.camera.peek(),
    slots: steps > 0 && store.colouring.peek() === "cluster" ? store.slots.peek() : [],
    frame: carriesTokens(steps, edited, store.n.peek()) ? frame : null,
  };
}

/**
 * Bring a state back: its tokens as they were, or computed again from the seed. The past of a run that its spec
 * tells is computed again too, where that does not take long.
 */
export async function applyState(store: Store, state: LinkState): Promise<void> {
  batch(() => {
    store.playing.value = false;
    store.setSpec(state.spec, state.preset ?? undefined);
    store.speed.value = state.speed;
    store.colouring.value = state.colouring;
    store.logTime.value = state.logTime;
    store.selected.value = state.selected;
    store.camera.value = state.camera;
  });
  if ((await arrive(store, state)) === "there" && state.slots.length > 0) store.slots.value = state.slots;
}

async function arrive(store: Store, { frame, steps, edited }: LinkState): Promise<CaughtUp> {
  const found = edited || steps === 0 ? "given up" : await store.catchUp(steps, frame ?? undefined);
  if (found !== "given up" || frame === null) return found;
  store.jumpTo(frame, steps, edited);
  return "there";
}

/** Follow the address; a damaged one gives a sentence and the default preset. False when it asks for nothing. */
export async function followHash(store: Store, hash: string): Promise<boolean> {
  try {
    const opened = await decodeHash(hash);
    if (opened === null) return false;
    if ("state" in opened) await applyState(store, opened.state);
    else choosePreset(store, presetNamed(opened.preset));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    choosePreset(store, PRESETS[0]!, false);
    store.message.value = `This link could not be opened: ${reason.replace(/\.$/, "")}. Here is the first preset instead.`;
  }
  return true;
}

function presetNamed(id: string): Preset {
  const found = findPreset(id);
  if (found === undefined) throw new Error(`there is no preset named "${id.slice(0, 40)}"`);
  return found;
}

/** The link, a replay that came with the page, or the first preset. */
export function openFirst(store: Store): () => void {
  const [replay] = store.options.replays;
  // The address of a notebook is not the page's.
  const hash = store.options.mode === "notebook" ? "" : location.hash;
  const begin = (): void => (replay === undefined ? choosePreset(store, PRESETS[0]!) : store.open(replay));
  void followHash(store, hash).then((followed) => followed || begin());
  const onHash = (): void => {
    if (store.locked.peek()) store.message.value = LOCKED;
    else void followHash(store, location.hash).then((followed) => followed || (location.hash === "" && begin()));
  };
  if (store.options.mode !== "notebook") addEventListener("hashchange", onHash);
  return () => removeEventListener("hashchange", onHash);
}
