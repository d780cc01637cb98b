// Computing many steps without freezing the page: for links that name a time but not the tokens.
import type { Signal } from "@preact/signals";
import type { Busy } from "./contract.ts";
import type { Live } from "./live.ts";

const SLICE = 30; // ms of work between two chances to draw
const SHOWN = 200; // frames of the past that the way there leaves

export async function catchUp(
  live: Live,
  steps: number,
  busy: Signal<Busy | null>,
  publish: () => void,
  fail: () => void,
): Promise<void> {
  let stopped = false;
  const run = live.simulator;
  const cancel = (): void => void (stopped = true);
  let chunk = 1;
  while (live.simulator === run && live.simulator.steps < steps && !stopped) {
    const began = performance.now();
    while (performance.now() - began < SLICE && live.simulator.steps < steps) {
      const good = live.advance(Math.min(chunk, steps - live.simulator.steps));
      // Longer strides while they are quick, up to what the past needs to be smooth.
      if (performance.now() - began < SLICE / 4) chunk = Math.min(2 * chunk, Math.ceil(steps / SHOWN));
      if (!good) {
        busy.value = null;
        return fail();
      }
    }
    busy.value = { label: "Computing up to the time of the link", fraction: live.simulator.steps / steps, cancel };
    publish();
    await new Promise((resume) => setTimeout(resume));
  }
  busy.value = null;
  publish();
}
