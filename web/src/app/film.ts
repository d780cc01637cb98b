// The moments of a run kept apart from it, for a video: they are shown one by one, and the run stays where it is.
import { batch } from "@preact/signals";
import { measure } from "../observe/index.ts";
import type { Film } from "./contract.ts";
import type { Shown, State } from "./state.ts";

export const LOCKED = "A video is being made of this run: wait until it is done, or cancel it.";

/** Until `end`, the view shows the film and is locked: see `unlessLocked` in store.ts. */
export function openFilm(state: State): Film {
  const { length } = state.shown.peek();
  const moment = momentsOf(state);
  const resume = state.playing.peek();
  const show = (index: number): void => {
    state.filmed.value = moment(index);
    state.publish();
  };
  const end = (): void =>
    batch(() => {
      state.filmed.value = null;
      state.playing.value = resume;
      if (state.message.peek() === LOCKED) state.message.value = null;
      state.publish();
    });
  batch(() => {
    state.playing.value = false;
    show(0);
  });
  return { length, show, end };
}

function momentsOf({ live, playback, shown }: State): (index: number) => Shown {
  const { track, length } = shown.peek();
  if (playback !== null) {
    const { frames } = playback;
    return (position) => ({ frame: frames[position]!, measured: playback.measuredAt(position), track, position, length, steps: 0 });
  }
  const { spec, history } = live;
  const past = Array.from({ length }, (_, k) => history.at(k));
  return (position) => {
    const { frame, steps, measured } = past[position]!;
    return { frame, measured: measured ?? measure(spec, frame), track, position, length, steps };
  };
}
