// Runs cases and hands back plain numbers, so that tests in a real browser can hold WebGL2 to the engine.
import type { Backend } from "../app/contract.ts";
import type { Spec } from "../spec/types.ts";
import { makeSimulator } from "./simulator.ts";

export interface ProbeCase {
  spec: Spec;
  backend: Backend | "auto";
  steps: number;
  repeats?: number; // time that many more advances of `steps`
  between?: () => void; // called half-way, to take WebGL2 away
}

export interface ProbeResult {
  backend: Backend;
  time: number;
  points: number[];
  radii: number[] | null;
  millisecondsPerStep: number;
}

/** One result per case. */
export function runProbe(cases: ProbeCase[]): ProbeResult[] {
  return cases.map(runCase);
}

function runCase({ spec, backend, steps, repeats = 0, between }: ProbeCase): ProbeResult {
  const simulator = makeSimulator(spec, backend);
  const half = Math.floor(steps / 2);
  simulator.advance(half);
  between?.();
  simulator.advance(steps - half);
  const { time, points, radii } = simulator;
  const result = { time, points: Array.from(points), radii: radii && Array.from(radii) };
  const before = performance.now();
  for (let k = 0; k < repeats; k++) simulator.advance(steps);
  const elapsed = performance.now() - before;
  const used = simulator.backend;
  simulator.dispose();
  return {
    ...result,
    backend: used,
    millisecondsPerStep: repeats === 0 ? 0 : elapsed / (repeats * steps),
  };
}
