// The clock of the page: one call per displayed frame, and how many of them there are per second.
import { type ReadonlySignal, signal } from "@preact/signals";

export interface Ticker {
  readonly fps: ReadonlySignal<number>;
  run(on: boolean): void;
}

const SMOOTHING = 0.06; // of the frame rate: about the last 16 frames
const PAUSE = 4000; // ms between two frames that mean the page was hidden, not slow

/** Calls `tick` before every repaint. A hidden page is not repainted, so it rests by itself. */
export function makeTicker(tick: () => void): Ticker {
  const fps = signal(0);
  let handle: number | null = null;
  let before = 0;
  let interval = 0; // ms between two frames, smoothed

  function turn(now: number): void {
    handle = requestAnimationFrame(turn);
    const elapsed = now - before;
    before = now;
    if (elapsed > 0 && elapsed < PAUSE) {
      // Frames over time: a mean of rates would hide the slow frames behind the quick ones.
      interval = interval === 0 ? elapsed : interval + SMOOTHING * (elapsed - interval);
      fps.value = 1000 / interval;
    }
    tick();
  }

  return {
    fps,
    run(on) {
      if (on && handle === null) {
        before = performance.now();
        handle = requestAnimationFrame(turn);
      } else if (!on && handle !== null) {
        cancelAnimationFrame(handle);
        handle = null;
      }
    },
  };
}
