// The state of one view of the page, as signals. `store.ts` makes it; everything else reads it.
import type { ReadonlySignal, Signal } from "@preact/signals";
import type { LibraryEntry, Replay, RunReplay, SweepReplay } from "../replay/types.ts";
import type { Stage } from "../scene/geometry.ts";
import type { Spec } from "../spec/types.ts";
import type { Options } from "./options.ts";

export type Colouring = "cluster" | "token" | "attention";
export type Backend = "webgl2" | "js";

/** Tokens at one time: n * d numbers, row-major. */
export interface Frame {
  time: number;
  points: Float64Array;
  radii: Float64Array | null;
}

/** What is read off a frame. Arrays have one entry per token or per bin. */
export interface Measured {
  energy: number | null; // null where the model has none (R^d, a trace)
  clusters: number;
  labels: Int32Array; // cluster of every token, 0 = largest
  sizes: number[];
  order: number; // |mean of x_i|
  cosine: number; // mean of <x_i, x_j>, i != j
}

/** One line of a chart over time. Values that were not measured are null. */
export interface Track {
  times: number[];
  energy: (number | null)[];
  clusters: (number | null)[];
  order: (number | null)[];
  cosine: (number | null)[];
}

/** A prediction drawn beside the measurement of the same name. */
export interface TheoryCurve {
  quantity: "energy" | "clusters" | "order" | "cosine";
  label: string; // "equiangular ODE"
  source: string; // "2312.10794, Thm 6.8"
  note: string; // under which hypothesis, or how this start differs from it
  at(time: number): number | null;
}

/** The engine's float64 run of the same spec, as far as it has come. */
export interface Exact {
  status: "queued" | "compiling" | "running" | "done" | "cancelled" | "failed";
  message: string; // a sentence: position in the queue, the error, the outcome
  fraction: number;
  frames: Frame[];
  track: Track;
}

export type Source = { kind: "live" } | { kind: "replay"; replay: RunReplay };

/** Where a stage is seen from, in scene coordinates. */
export interface Camera {
  stage: Stage;
  position: number[];
  target: number[];
}

/** How computing a past ended: another run may have begun meanwhile, or it was too long or cancelled. */
export type CaughtUp = "there" | "left" | "given up";

export interface Busy {
  label: string;
  fraction: number | null; // null where nobody knows how far it is
  cancel(): void;
}

/** The moments of a run as they are now: a video shows them one by one, while the view is locked. */
export interface Film {
  readonly length: number;
  show(index: number): void;
  end(): void; // the view as it was, unlocked
}

export interface Store {
  options: Options;
  spec: Signal<Spec>; // start and model; what the link, the TOML and the engine get
  preset: Signal<string | null>; // id of the preset it came from, until the model or start is changed
  known: ReadonlySignal<Spec | string>; // the spec of what is shown, live or stored; a sentence where there is none
  edited: Signal<boolean>; // tokens were dragged, or the model changed on the way: spec alone no longer tells
  source: Signal<Source>;
  n: ReadonlySignal<number>;
  d: ReadonlySignal<number>; // 2 or 3: what is drawn
  space: ReadonlySignal<"sphere" | "euclidean">;
  backend: ReadonlySignal<Backend>; // what the simulator really uses
  wantedBackend: Signal<Backend | "auto">;
  playing: Signal<boolean>;
  speed: Signal<number>; // steps per displayed frame (asked for); in a replay, times its natural pace
  pace: ReadonlySignal<number>; // steps per displayed frame that this machine manages
  frame: ReadonlySignal<Frame>; // what is shown
  measured: ReadonlySignal<Measured>;
  track: ReadonlySignal<Track>; // measurements so far; grows while it runs
  curves: ReadonlySignal<TheoryCurve[]>;
  position: ReadonlySignal<number>; // index of the shown frame in the history
  length: ReadonlySignal<number>; // frames in the history
  stepsShown: ReadonlySignal<number>; // steps from the start to the shown frame (0 in a replay)
  selected: Signal<number | null>; // a chosen token
  colouring: Signal<Colouring>;
  logTime: Signal<boolean>; // charts over log t
  camera: Signal<Camera | null>; // null: from where the stage is seen by itself
  slots: Signal<number[]>; // colours of the clusters, largest first; the scene tells them, a link brings them back
  labels: ReadonlySignal<string[] | null>; // texts of tokens (a trace)
  exact: Signal<Exact | null>;
  exactFrame: ReadonlySignal<Frame | null>; // of the exact run, at the shown time
  sweep: Signal<SweepReplay | null>;
  library: Signal<LibraryEntry[]>;
  dark: ReadonlySignal<boolean>;
  theme: Signal<"auto" | "light" | "dark">;
  message: Signal<string | null>; // a sentence to the user, shown as a toast
  busy: Signal<Busy | null>; // something that takes seconds: catching up with a link, a video
  locked: ReadonlySignal<boolean>; // a video is made: what would change the view is refused with a message
  fps: ReadonlySignal<number>;

  setSpec(spec: Spec, preset?: string): void; // restart from its start
  changeModel(change: (wanted: Spec) => Spec): void; // go on from where the tokens are, in steps that are short enough
  extend(t1: number): void; // where the run ends, at the latest
  restart(): void;
  stepOnce(): void;
  stepBack(): void;
  show(position: number): void; // scrub; pauses
  playFromHere(): void; // drop what comes after the shown frame and go on
  dragToken(index: number, point: number[]): void; // the token is held there until releaseToken
  releaseToken(): void;
  jumpTo(frame: Frame, steps: number, edited: boolean): void; // these tokens at this time, without a past
  catchUp(steps: number, last?: Frame): Promise<CaughtUp>; // compute a past, with progress; `last` if it is affordable
  film(): Film;
  recorded(): RunReplay; // what is shown and its past, as a replay
  open(replay: Replay): void;
  watchCell(row: number, column: number): void; // of the sweep
  backToLive(): void;
  computeExactly(): void;
  cancelExact(): void;
  dispose(): void;
}
