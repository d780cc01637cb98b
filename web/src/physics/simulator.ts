// What runs a spec in the browser: the same interface for plain JavaScript and WebGL2.
import type { Backend, Frame } from "../app/contract.ts";
import { tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { AttentionSums, type PairSums } from "./attention.ts";
import { CircleSums, suitsCircle } from "./circle.ts";
import { FlowSimulator, type SumsSource } from "./flow.ts";
import { type Model, modelOf } from "./model.ts";
import type { Increments } from "./noise.ts";
import { harmonicsPerToken, SphereSums, suitsSphere } from "./sphere.ts";
import { startTokens } from "./start.ts";
import { Compute } from "./webgl/context.ts";
import { GpuSums, runsOnGpu } from "./webgl/sums.ts";

export interface Simulator {
  /** What computes now: WebGL2 falls back to JavaScript where it is missing, lost, or not fit for the model. */
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

// Below this a readback costs more than the sums themselves on any machine.
const FEWEST_ON_GPU = 384;
const TRIAL_TOKENS = 1024;
// Measured on a server core: 11 ns for a pair, 3 ns for a harmonic.
const SECONDS_PER_PAIR = 11e-9;
const SECONDS_PER_HARMONIC = 3e-9;

/** "auto" takes WebGL2 where a trial on this machine shows that it pays. */
export function makeSimulator(
  spec: Spec,
  backend: Backend | "auto",
  increments?: Increments,
): Simulator {
  const compute = backend === "js" || !mayPay(spec, backend) ? null : Compute.open();
  if (compute === null) return new FlowSimulator(spec, javaScript, increments);
  const source = onGpu(compute);
  if (backend === "auto" && !pays(spec, source)) {
    source.close();
    return new FlowSimulator(spec, javaScript, increments);
  }
  return new FlowSimulator(spec, source, increments);
}

const javaScript: SumsSource = {
  make: inJavaScript,
  close: () => undefined,
};

function inJavaScript(model: Model): PairSums {
  if (suitsCircle(model)) return new CircleSums(model);
  return suitsSphere(model) ? new SphereSums(model) : new AttentionSums(model);
}

function onGpu(compute: Compute): SumsSource {
  const make = (model: Model) => {
    const fit = runsOnGpu(model) && !compute.lost;
    try {
      return fit ? new GpuSums(model, compute) : inJavaScript(model);
    } catch {
      // A driver that cannot compile the shader leaves the page with JavaScript, not without tokens.
      return inJavaScript(model);
    }
  };
  return { make, close: () => compute.close() };
}

/** Few tokens, and series on the circle, are faster without a readback. */
function mayPay(spec: Spec, backend: Backend | "auto"): boolean {
  const many = tokenCount(spec) >= FEWEST_ON_GPU && !suitsCircle(modelOf(spec));
  return backend === "webgl2" || many;
}

/**
 * Whether the sums of this model take less time on this GPU (or its software stand-in) than in JavaScript,
 * tried with at most TRIAL_TOKENS tokens so that a slow one does not hold up the page.
 */
function pays(spec: Spec, source: SumsSource): boolean {
  const whole = modelOf(spec);
  const model = { ...whole, n: Math.min(whole.n, TRIAL_TOKENS) };
  const sums = source.make(model);
  if (sums.backend === "js") return false;
  const points = startTokens(spec).points.subarray(0, model.n * model.d);
  const out = new Float64Array(points.length);
  sums.evaluate(points, points, true, out); // compiles the shader
  const before = performance.now();
  sums.evaluate(points, points, true, out);
  const seconds = (performance.now() - before) / 1000;
  sums.dispose();
  return seconds < secondsInJavaScript(model);
}

function secondsInJavaScript(model: Model): number {
  const { n, causal, weights, kind } = model;
  if (suitsSphere(model)) return SECONDS_PER_HARMONIC * n * harmonicsPerToken(model);
  const symmetric = !causal && weights.B === null && kind !== "hardmax";
  return SECONDS_PER_PAIR * (symmetric ? 0.5 : 1) * n ** 2;
}
