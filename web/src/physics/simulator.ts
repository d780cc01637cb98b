// What runs a spec in the browser: the same interface for plain JavaScript and WebGL2.
import type { Backend, Frame } from "../app/contract.ts";
import type { Spec } from "../spec/types.ts";
import { JsSimulator } from "./js.ts";

export interface Simulator {
  readonly backend: Backend;
  readonly n: number;
  readonly d: number;
  readonly time: number;
  readonly steps: number;
  /** n * d numbers, row-major; the simulator's own buffer, overwritten by the next step. */
  readonly points: Float64Array;
  readonly radii: Float64Array | null;
  /** Make that many steps. */
  advance(count: number): void;
  /** Go to a frame: back in time, or after a drag. */
  put(frame: Frame, steps?: number): void;
  /** A held token does not move. */
  hold(index: number | null): void;
  /** Another model or step from now on, for the same tokens. */
  change(spec: Spec): void;
  dispose(): void;
}

export function makeSimulator(spec: Spec, _backend: Backend | "auto"): Simulator {
  return new JsSimulator(spec);
}
