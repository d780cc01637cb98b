// The store of one view: its state, what follows from it, and what can be done to it.
import { effect } from "@preact/signals";
import { replayActions, runActions, timeActions } from "./actions.ts";
import type { Store } from "./contract.ts";
import { makeExactClient } from "./exact.ts";
import { LOCKED, openFilm } from "./film.ts";
import type { Options } from "./options.ts";
import { State } from "./state.ts";
import { makeTheme } from "./theme.ts";
import { makeTicker } from "./ticker.ts";
import { viewsOf } from "./views.ts";

export function createStore(options: Options): Store {
  const state = new State();
  const { live, playback: _, shown: __, wanted: ___, filmed: ____, ...signals } = state;
  const { theme, dark, dispose: forgetTheme } = makeTheme();
  const dropExact = (): void => {
    client.drop();
    state.exact.value = null;
  };
  const { tick, ...time } = timeActions(state, dropExact);
  const run = runActions(state, dropExact);
  const { recorded, ...replays } = replayActions(state, run.setSpec);
  const ticker = makeTicker(tick);
  const store: Store = {
    options,
    ...signals,
    ...viewsOf(state),
    theme,
    dark,
    fps: ticker.fps,
    ...unlessLocked(state, { ...run, ...time, ...replays, computeExactly: () => client.start() }),
    film: () => openFilm(state),
    recorded,
    cancelExact: () => client.cancel(),
    dispose() {
      stop();
      ticker.run(false);
      client.drop();
      live.dispose();
      forgetTheme();
    },
  };
  const client = makeExactClient(store);
  const stop = follow(state, (on) => ticker.run(on));
  return store;
}

/** The same actions, refused with a sentence while a video is made of what is shown. */
function unlessLocked<A extends object>(state: State, actions: A): A {
  const guarded = (act: (...given: unknown[]) => unknown) => (...given: unknown[]) => {
    if (!state.locked.peek()) return act(...given);
    state.message.value = LOCKED;
  };
  return Object.fromEntries(Object.entries(actions).map(([name, act]) => [name, guarded(act)])) as A;
}

/** Keep the clock and the simulator as the signals say, until the result is called. */
function follow(state: State, run: (on: boolean) => void): () => void {
  const stopClock = effect(() => {
    run(state.playing.value && !state.locked.value);
    // A pause measures the frame it stops at, which may have been passed over while it ran.
    if (!state.playing.value) state.publish();
  });
  const stopBackend = effect(() => {
    const wanted = state.wantedBackend.value;
    if (wanted === state.live.wanted || state.locked.value) return;
    state.live.useBackend(wanted);
    state.publish();
  });
  return () => {
    stopClock();
    stopBackend();
  };
}
