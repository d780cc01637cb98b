// What one view remembers: its settings as signals, the run behind them, and what of it is on the screen.
import { batch, computed, type Signal, signal } from "@preact/signals";
import { PRESETS } from "../presets/index.ts";
import type { LibraryEntry, SweepReplay } from "../replay/types.ts";
import { validate } from "../spec/bounds.ts";
import type { Spec } from "../spec/types.ts";
import type { Backend, Busy, Camera, Colouring, Exact, Frame, Measured, Source, Track } from "./contract.ts";
import { Live } from "./live.ts";
import type { Playback } from "./playback.ts";

/** What is on the screen, read off the live run or the replay at once. */
export interface Shown {
  frame: Frame;
  measured: Measured;
  track: Track;
  position: number;
  length: number;
  steps: number;
}

const BROKEN =
  "The numbers grew without bound, so the run was paused at the last good frame: choose a smaller step.";
const FIRST = PRESETS[0]!;

export class State {
  readonly spec = signal<Spec>(FIRST.spec);
  readonly preset = signal<string | null>(FIRST.id);
  readonly edited = signal(false);
  readonly source = signal<Source>({ kind: "live" });
  readonly wantedBackend = signal<Backend | "auto">("auto");
  readonly playing = signal(false);
  readonly speed = signal(FIRST.speed);
  readonly selected = signal<number | null>(null);
  readonly colouring = signal<Colouring>("cluster");
  readonly logTime = signal(false);
  readonly camera = signal<Camera | null>(null);
  readonly slots = signal<number[]>([]);
  readonly exact = signal<Exact | null>(null);
  readonly sweep = signal<SweepReplay | null>(null);
  readonly library = signal<LibraryEntry[]>([]);
  readonly message = signal<string | null>(null);
  readonly busy = signal<Busy | null>(null);
  readonly filmed = signal<Shown | null>(null); // what a video shows instead of the run, while one is made
  readonly locked = computed(() => this.filmed.value !== null);

  wanted = FIRST.spec; // with the step and the end that were asked for, of which `spec` has what the model allows
  readonly live = new Live(FIRST.spec, "auto");
  playback: Playback | null = null;
  readonly pace = signal(0);
  readonly backend = signal<Backend>(this.live.simulator.backend);
  readonly shown: Signal<Shown> = signal(this.read());

  /** Bring what happened in the run to the screen. */
  publish(): void {
    batch(() => {
      this.shown.value = this.read();
      this.pace.value = this.live.pace;
      this.backend.value = this.live.simulator.backend;
    });
  }

  /** Pause, because the numbers stopped being numbers. */
  pauseBroken(): void {
    this.playing.value = false;
    this.message.value = BROKEN;
  }

  /** Whether a spec can be simulated; says why not. */
  accepts(candidate: Spec): boolean {
    const [problem] = validate(candidate);
    if (problem !== undefined) this.message.value = problem;
    return problem === undefined;
  }

  leaveReplay(): void {
    this.playback = null;
    this.source.value = { kind: "live" };
  }

  private read(): Shown {
    const { live, playback } = this;
    const filmed = this.filmed.peek();
    if (filmed !== null) return filmed;
    if (playback !== null) {
      const { position, frames, track } = playback;
      const frame = frames[position] as Frame;
      return { frame, measured: playback.measuredAt(position), track, position, length: frames.length, steps: 0 };
    }
    const { position, history } = live;
    const moving = this.playing.peek() && position === history.length - 1;
    const measured = moving ? live.latest() : live.measuredAt(position);
    const { frame, steps } = history.at(position);
    // A new object around the same growing arrays: readers see that something was added.
    const track = { ...history.track };
    return { frame, measured, track, position, length: history.length, steps };
  }
}
