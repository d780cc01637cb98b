// The state of one view and everything that can be done to it.
import { batch, computed, effect, type Signal, signal } from "@preact/signals";
import { PRESETS } from "../presets/index.ts";
import { recordReplay } from "../replay/record.ts";
import type { LibraryEntry, SweepReplay } from "../replay/types.ts";
import { validate } from "../spec/bounds.ts";
import { dimension, spaceOf, tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { curvesFor } from "../theory/index.ts";
import { adoptSpec, specOfCell } from "./adopt.ts";
import { catchUp } from "./catchup.ts";
import type { Backend, Busy, Colouring, Exact, Frame, Measured, Source, Store, Track } from "./contract.ts";
import { makeExactClient } from "./exact.ts";
import { frameAt } from "./interpolate.ts";
import { Live } from "./live.ts";
import type { Options } from "./options.ts";
import { Playback } from "./playback.ts";
import { makeTheme } from "./theme.ts";
import { makeTicker } from "./ticker.ts";

/** What is on the screen, read off the live run or the replay at once. */
interface Shown {
  frame: Frame;
  measured: Measured;
  track: Track;
  position: number;
  length: number;
  steps: number;
}

const BROKEN =
  "The numbers grew without bound, so the run was paused at the last good frame: choose a smaller step.";

/** What moves tokens: the live run or a replay. Plain objects; the signals are written by `createStore`. */
interface Engine {
  live: Live;
  playback: Playback | null;
}

export function createStore(options: Options): Store {
  const first = PRESETS[0]!;
  const spec = signal<Spec>(first.spec);
  const preset = signal<string | null>(first.id);
  const edited = signal(false);
  const source = signal<Source>({ kind: "live" });
  const wantedBackend = signal<Backend | "auto">("auto");
  const playing = signal(false);
  const speed = signal(first.speed);
  const pace = signal(0);
  const message = signal<string | null>(null);
  const busy = signal<Busy | null>(null);
  const exact = signal<Exact | null>(null);
  const sweep = signal<SweepReplay | null>(null);
  const selected = signal<number | null>(null);
  const logTime = signal(false);
  const { theme, dark, dispose: forgetTheme } = makeTheme();

  const engine: Engine = { live: new Live(first.spec, "auto"), playback: null };
  const backend = signal<Backend>(engine.live.simulator.backend);
  const shown: Signal<Shown> = signal(read());
  const ticker = makeTicker(tick);

  function read(): Shown {
    const { live, playback } = engine;
    if (playback !== null) {
      const { position, frames } = playback;
      const frame = frames[position] as Frame;
      const measured = playback.measuredAt(position);
      return { frame, measured, track: playback.track, position, length: frames.length, steps: 0 };
    }
    const { position, history } = live;
    const moving = playing.peek() && position === history.length - 1;
    const measured = moving ? live.latest() : live.measuredAt(position);
    const { frame, steps } = history.at(position);
    // A new object around the same growing arrays: readers see that something was added.
    const track = { ...history.track };
    return { frame, measured, track, position, length: history.length, steps };
  }

  function publish(): void {
    batch(() => {
      shown.value = read();
      pace.value = engine.live.pace;
      backend.value = engine.live.simulator.backend;
    });
  }

  function tick(): void {
    const { live, playback } = engine;
    if (playback !== null) {
      if (!playback.tick(speed.peek())) playing.value = false;
    } else if (!live.tick(speed.peek(), logTime.peek())) {
      fail(BROKEN);
    } else if (live.atEnd()) {
      playing.value = false;
    }
    publish();
  }

  function fail(sentence: string): void {
    playing.value = false;
    message.value = sentence;
  }

  /** Whether a spec can be simulated; says why not. */
  function accepts(candidate: Spec): boolean {
    const [problem] = validate(candidate);
    if (problem !== undefined) message.value = problem;
    return problem === undefined;
  }

  function leaveReplay(): void {
    engine.playback = null;
    source.value = { kind: "live" };
  }

  function begin(candidate: Spec, from: string | null): void {
    client.drop();
    batch(() => {
      leaveReplay();
      engine.live.restart(candidate, wantedBackend.peek());
      spec.value = candidate;
      preset.value = from;
      edited.value = false;
      exact.value = null;
      if ((selected.peek() ?? 0) >= tokenCount(candidate)) selected.value = null;
      publish();
    });
  }

  const store: Store = {
    options,
    spec,
    preset,
    edited,
    source,
    n: computed(() => (source.value.kind === "live" ? tokenCount(spec.value) : (source.value.replay.points.shape[1] ?? 0))),
    d: computed(() => (source.value.kind === "live" ? dimension(spec.value) : (source.value.replay.points.shape[2] ?? 2))),
    space: computed(() => (source.value.kind === "live" ? spaceOf(spec.value) : source.value.replay.space)),
    backend,
    wantedBackend,
    playing,
    speed,
    pace,
    frame: computed(() => shown.value.frame),
    measured: computed(() => shown.value.measured),
    track: computed(() => shown.value.track),
    curves: computed(() => curvesOf(source.value, spec.value, edited.value)),
    position: computed(() => shown.value.position),
    length: computed(() => shown.value.length),
    stepsShown: computed(() => shown.value.steps),
    selected,
    colouring: signal<Colouring>("cluster"),
    logTime,
    labels: computed(() => (source.value.kind === "replay" ? source.value.replay.labels : null)),
    exact,
    exactFrame: computed(() => {
      const run = source.value.kind === "live" ? exact.value : null;
      return run && frameAt(run.frames, shown.value.frame.time, store.space.value === "sphere", store.d.value);
    }),
    sweep,
    library: signal<LibraryEntry[]>([]),
    dark,
    theme,
    message,
    busy,
    fps: ticker.fps,

    setSpec(candidate, from) {
      if (accepts(candidate)) begin(candidate, from ?? null);
    },

    changeModel(change) {
      const candidate = change(spec.peek());
      if (!accepts(candidate)) return;
      const same = JSON.stringify(candidate.tokens) === JSON.stringify(spec.peek().tokens);
      if (!same || source.peek().kind === "replay") return begin(candidate, null);
      const began = engine.live.history.at(engine.live.position).steps > 0;
      client.drop();
      batch(() => {
        engine.live.change(candidate);
        spec.value = candidate;
        preset.value = null;
        exact.value = null;
        if (began) edited.value = true;
        publish();
      });
    },

    extend(t1) {
      const candidate = { ...spec.peek(), solve: { ...spec.peek().solve, t1 } };
      if (!accepts(candidate)) return;
      engine.live.spec = candidate;
      spec.value = candidate;
    },

    restart() {
      if (engine.playback === null) return begin(spec.peek(), preset.peek());
      engine.playback.position = 0;
      publish();
    },

    stepOnce() {
      playing.value = false;
      if (engine.playback !== null) return store.show(engine.playback.position + 1);
      if (!engine.live.advance(1)) fail(BROKEN);
      publish();
    },

    stepBack() {
      store.show(shown.peek().position - 1);
    },

    show(position) {
      playing.value = false;
      const bounded = Math.max(0, Math.min(Math.round(position), shown.peek().length - 1));
      (engine.playback ?? engine.live).position = bounded;
      publish();
    },

    playFromHere() {
      const { playback } = engine;
      if (playback !== null && playback.position === playback.frames.length - 1) playback.position = 0;
      playing.value = true;
    },

    dragToken(index, point) {
      if (engine.playback !== null) {
        message.value = "These tokens were computed before, so they cannot be moved; go back to the live run to drag.";
        return;
      }
      client.drop();
      batch(() => {
        engine.live.drag(index, point);
        preset.value = null;
        edited.value = true;
        exact.value = null;
        publish();
      });
    },

    releaseToken() {
      engine.live.release();
      publish();
    },

    jumpTo(frame, steps, changed) {
      batch(() => {
        leaveReplay();
        playing.value = false;
        engine.live.begin(frame, steps);
        edited.value = changed;
        publish();
      });
    },

    catchUp: (steps) => catchUp(engine.live, steps, busy, publish, () => fail(BROKEN)),

    recorded() {
      const { live, playback } = engine;
      if (playback !== null) return playback.replay;
      const frames = Array.from({ length: live.history.length }, (_, k) => live.history.at(k).frame);
      return recordReplay({ spec: spec.peek(), frames, track: live.history.track, edited: edited.peek() });
    },

    open(replay) {
      if (replay.kind === "sweep") {
        sweep.value = replay;
        return;
      }
      batch(() => {
        playing.value = false;
        engine.playback = new Playback(replay);
        source.value = { kind: "replay", replay };
        selected.value = null;
        publish();
      });
    },

    watchCell(row, column) {
      const grid = sweep.peek();
      if (grid === null) return;
      const found = specOfCell(grid, row, column);
      if (typeof found === "string") {
        message.value = found;
        return;
      }
      store.setSpec(found);
      playing.value = true;
    },

    backToLive() {
      batch(() => {
        playing.value = false;
        leaveReplay();
        selected.value = null;
        publish();
      });
    },

    computeExactly: () => client.start(),
    cancelExact: () => client.cancel(),

    dispose() {
      stopRunning();
      stopBackend();
      ticker.run(false);
      client.drop();
      engine.live.dispose();
      forgetTheme();
    },
  };
  const client = makeExactClient(store);

  const stopRunning = effect(() => {
    ticker.run(playing.value);
    // A pause measures the frame it stops at, which may have been passed over while it ran.
    if (!playing.value) publish();
  });
  const stopBackend = effect(() => {
    const wanted = wantedBackend.value;
    if (wanted !== engine.live.wanted) engine.live.useBackend(wanted);
    publish();
  });
  return store;
}

/** Theory speaks about a run from its own start with one model. */
function curvesOf(source: Source, spec: Spec, edited: boolean): ReturnType<typeof curvesFor> {
  if (source.kind === "live") return edited ? [] : curvesFor(spec);
  if (source.replay.kind === "trace" || source.replay.spec === null) return [];
  const adopted = adoptSpec(source.replay.spec);
  return typeof adopted === "string" ? [] : curvesFor(adopted);
}
