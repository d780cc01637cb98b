// Computing many steps without freezing the page: the way to the time of a link.
import type { CaughtUp, Frame } from "./contract.ts";
import type { Live } from "./live.ts";
import type { State } from "./state.ts";

const SLICE = 30; // ms of work between two chances to draw
const HIDDEN_SLICE = 500; // nobody looks, and a hidden page gets few turns
const SHOWN = 200; // frames of the past that the way there leaves,
const GROWTH = 0.05; // and more at its beginning: of the number of steps from one frame to the next
const AFFORDABLE = 8_000; // ms for a past that could be left out
const TRIAL = 300; // ms of work that tell how long it will take

/**
 * `steps` steps from the start. With `last` only the past is missing: these are the tokens at its end, and it is
 * given up when it would take too long.
 */
export async function catchUp(state: State, steps: number, last?: Frame): Promise<CaughtUp> {
  const { live, busy } = state;
  const run = live.simulator;
  const here = (): boolean => live.simulator === run && state.playback === null;
  let stopped = false;
  let worked = 0;
  const stride = { length: 1 };
  while (here() && run.steps < steps && !stopped) {
    const began = performance.now();
    if (!workFor(globalThis.document?.hidden ? HIDDEN_SLICE : SLICE, live, steps, stride)) {
      state.pauseBroken();
      break;
    }
    worked += performance.now() - began;
    if (last !== undefined && worked > TRIAL && (worked * steps) / run.steps > AFFORDABLE) break;
    const cancel = (): void => void (stopped = true);
    busy.value = { label: "Computing up to the time of the link", fraction: run.steps / steps, cancel };
    state.publish();
    await new Promise((resume) => setTimeout(resume));
  }
  busy.value = null;
  if (!here()) return "left";
  if (last !== undefined && run.steps === steps && !state.edited.peek()) putLast(live, last, steps);
  state.publish();
  return run.steps < steps ? "given up" : "there";
}

/** False when the numbers stopped being numbers. */
function workFor(slice: number, live: Live, steps: number, stride: { length: number }): boolean {
  const began = performance.now();
  while (performance.now() - began < slice && live.simulator.steps < steps) {
    const done = live.simulator.steps;
    if (!live.advance(Math.min(stride.length, Math.ceil(GROWTH * (done + 1)), steps - done))) return false;
    // Longer strides while they are quick, up to what the past needs to be smooth.
    if (performance.now() - began < SLICE / 4) stride.length = Math.min(2 * stride.length, Math.ceil(steps / SHOWN));
  }
  return true;
}

/** The tokens that were given instead of those computed, which may differ in the last digits. */
function putLast(live: Live, frame: Frame, steps: number): void {
  live.simulator.put(frame, steps);
  live.history.replaceLast({ frame, steps, measured: null });
  live.measuredAt(live.position, true);
}
