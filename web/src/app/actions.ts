// Everything that can be done to the state: to the run, to its time, and to what was computed before.
import { batch } from "@preact/signals";
import { recordReplay } from "../replay/record.ts";
import type { RunReplay } from "../replay/types.ts";
import { asChanged, withEnd } from "../spec/edit.ts";
import { settled } from "../spec/settle.ts";
import { tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { atStart, specOfCell } from "./adopt.ts";
import { catchUp } from "./catchup.ts";
import type { Frame, Store } from "./contract.ts";
import { Playback } from "./playback.ts";
import type { State } from "./state.ts";

type RunActions = Pick<Store, "setSpec" | "changeModel" | "extend" | "dragToken" | "releaseToken" | "jumpTo" | "catchUp">;
type TimeActions = Pick<Store, "restart" | "stepOnce" | "stepBack" | "show" | "playFromHere"> & { tick(): void };
type ReplayActions = Pick<Store, "recorded" | "open" | "watchCell" | "backToLive">;

/** From the start of a spec. `dropExact` lets go of the engine's run, which belonged to another one. */
function begin(state: State, dropExact: () => void, candidate: Spec, preset: string | null, wanted = candidate): void {
  dropExact();
  batch(() => {
    state.leaveReplay();
    state.wanted = wanted;
    state.live.restart(candidate, state.wantedBackend.peek());
    state.spec.value = candidate;
    state.preset.value = preset;
    state.edited.value = false;
    if ((state.selected.peek() ?? 0) >= tokenCount(candidate)) state.selected.value = null;
    state.publish();
  });
}

export function runActions(state: State, dropExact: () => void): RunActions {
  const setSpec = (candidate: Spec, preset?: string): void => {
    if (state.accepts(candidate)) begin(state, dropExact, candidate, preset ?? null);
  };
  return {
    setSpec,
    changeModel: (change) => changeModel(state, dropExact, asChanged(change(state.wanted))),
    extend: (t1) => extend(state, t1),
    dragToken: (index, point) => dragToken(state, dropExact, index, point),
    releaseToken() {
      state.live.release();
      state.publish();
    },
    jumpTo: (frame, steps, edited) => jumpTo(state, frame, steps, edited),
    catchUp: (steps, last) => catchUp(state, steps, last),
  };
}

/** Other tokens begin a new run; another model goes on from the tokens that are there. */
function changeModel(state: State, dropExact: () => void, wanted: Spec): void {
  const candidate = settled(wanted);
  if (!state.accepts(candidate)) return;
  const sameTokens = JSON.stringify(candidate.tokens) === JSON.stringify(state.spec.peek().tokens);
  if (!sameTokens || state.playback !== null) return begin(state, dropExact, candidate, null, wanted);
  dropExact();
  batch(() => {
    state.wanted = wanted;
    const begun = state.shown.peek().steps > 0;
    state.live.change(candidate);
    state.spec.value = candidate;
    state.preset.value = null;
    if (begun) state.edited.value = true;
    state.publish();
  });
}

function extend(state: State, t1: number): void {
  const wanted = withEnd(state.wanted, t1);
  const candidate = settled(wanted);
  if (!state.accepts(candidate)) return;
  state.wanted = wanted;
  state.live.spec = candidate;
  state.spec.value = candidate;
}

function dragToken(state: State, dropExact: () => void, index: number, point: number[]): void {
  if (state.playback !== null) {
    state.message.value =
      "These tokens were computed before, so they cannot be moved; go back to the live run to drag.";
    return;
  }
  dropExact();
  batch(() => {
    state.live.drag(index, point);
    state.wanted = asChanged(state.wanted);
    state.spec.value = asChanged(state.spec.peek());
    state.preset.value = null;
    state.edited.value = true;
    state.publish();
  });
}

function jumpTo(state: State, frame: Frame, steps: number, edited: boolean): void {
  batch(() => {
    state.leaveReplay();
    state.playing.value = false;
    state.live.begin(frame, steps);
    state.edited.value = edited;
    state.publish();
  });
}

export function timeActions(state: State, dropExact: () => void): TimeActions {
  const show = (position: number): void => {
    state.playing.value = false;
    const last = state.shown.peek().length - 1;
    (state.playback ?? state.live).position = Math.max(0, Math.min(Math.round(position), last));
    state.publish();
  };
  return {
    show,
    tick: () => tick(state),
    restart() {
      if (state.playback !== null) show(0);
      else begin(state, dropExact, state.spec.peek(), state.preset.peek(), state.wanted);
    },
    stepOnce() {
      if (state.playback !== null) return show(state.playback.position + 1);
      state.playing.value = false;
      if (!state.live.advance(1)) state.pauseBroken();
      state.publish();
    },
    stepBack: () => show(state.shown.peek().position - 1),
    playFromHere() {
      const { playback } = state;
      // At the end of a replay there is nothing left to play: it begins again.
      if (playback !== null && playback.position === playback.frames.length - 1) playback.position = 0;
      state.playing.value = true;
    },
  };
}

/** One displayed frame. */
function tick(state: State): void {
  const { live, playback } = state;
  if (playback !== null) {
    if (!playback.tick(state.speed.peek())) state.playing.value = false;
  } else if (!live.tick(state.speed.peek(), state.logTime.peek())) {
    state.pauseBroken();
  } else if (live.atEnd()) {
    state.playing.value = false;
  }
  state.publish();
}

export function replayActions(state: State, setSpec: (spec: Spec) => void): ReplayActions {
  return {
    recorded: () => recorded(state),
    open(replay) {
      if (replay.kind === "sweep") state.sweep.value = replay;
      else showReplay(state, replay);
    },
    watchCell(row, column) {
      const sweep = state.sweep.peek();
      if (sweep === null) return;
      const found = specOfCell(sweep, row, column);
      if (typeof found === "string") {
        state.message.value = found;
        return;
      }
      setSpec(found);
      state.playing.value = !atStart(sweep, row, column);
    },
    backToLive() {
      batch(() => {
        state.playing.value = false;
        state.leaveReplay();
        state.selected.value = null;
        state.publish();
      });
    },
  };
}

function showReplay(state: State, replay: RunReplay): void {
  const playback = new Playback(replay);
  batch(() => {
    state.playing.value = false;
    state.playback = playback;
    state.source.value = { kind: "replay", replay };
    state.selected.value = null;
    state.publish();
  });
}

function recorded({ live, playback, spec, edited }: State): RunReplay {
  if (playback !== null) return playback.replay;
  const frames = Array.from({ length: live.history.length }, (_, k) => live.history.at(k).frame);
  return recordReplay({ spec: spec.peek(), frames, track: live.history.track, edited: edited.peek() });
}
