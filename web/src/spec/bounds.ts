// What every control may be set to, and which specs the page accepts.
import { norm } from "../physics/linear.ts";
import { speedOf } from "../physics/model.ts";
import { drawWeights } from "../physics/weights.ts";
import { checkSpec } from "./check.ts";
import type { Spec } from "./types.ts";

export interface Limit {
  min: number;
  max: number;
  default: number;
}

export const LIMITS = {
  n: { min: 2, max: 4096, default: 128 },
  d: { min: 2, max: 3, default: 3 },
  beta: { min: 0, max: 200, default: 4 },
  perspectiveBeta: { min: 0, max: 20, default: 4 }, // USA whose clock carries e^beta
  dt: { min: 1e-10, max: 0.5, default: 0.05 },
  step: { min: 1e-10, max: 2, default: 0.1 },
  t1: { min: 1e-9, max: 1e7, default: 20 },
  seed: { min: 0, max: Number.MAX_SAFE_INTEGER, default: 1 },
  temperature: { min: 0, max: 10, default: 0.1 },
  slope: { min: 0, max: 100, default: 1 },
  value: { min: -10, max: 10, default: 1 }, // entries of V and B
  lawScale: { min: 0, max: 10, default: 0.7 },
  width: { min: 1, max: 256, default: 16 },
  perceptronScale: { min: 0, max: 10, default: 1 },
  tau: { min: 1e-6, max: 1e6, default: 5 },
  alpha: { min: 1e-3, max: 10, default: 1 },
  radius: { min: 1e-3, max: Math.PI, default: 0.5 },
  arcWidth: { min: 0, max: 2, default: 0.1 },
  perCluster: { min: 1, max: 4096, default: 16 },
  clusters: { min: 1, max: 64, default: 2 },
  gaussianScale: { min: 1e-6, max: 100, default: 1 },
  halfWidth: { min: 1e-6, max: 100, default: 2 },
  correlation: { min: -0.999, max: 0.999, default: 0 },
  perturb: { min: 1e-12, max: 1, default: 1e-3 },
} as const satisfies Record<string, Limit>;

/** Sentences about what is wrong; none means that the page and the engine accept the spec. */
export function validate(spec: unknown): string[] {
  const wrong = checkSpec(spec, LIMITS);
  return wrong.length > 0 ? wrong : [...checkStep(spec as Spec), ...checkEnd(spec as Spec)];
}

function checkEnd(spec: Spec): string[] {
  const most = longestTime(spec);
  if (spec.solve.t1 <= most) return [];
  const reason = "the scores of RescaledSA grow like e^(2 |V| t)";
  return [`solve.t1 is ${spec.solve.t1}, but ${reason}; use at most ${most.toPrecision(3)}`];
}

function checkStep(spec: Spec): string[] {
  if (spec.solve.method !== "fixed") return [];
  const most = largestStep(spec);
  if (spec.solve.dt <= most * (1 + 1e-9)) return [];
  const rate = (1 / most).toPrecision(3);
  const advice = `use at most ${most.toPrecision(3)}`;
  return [`solve.dt is ${spec.solve.dt}, but this model moves at rates up to ${rate}; ${advice}`];
}

/**
 * The longest stable step of the flow: one over the fastest rate, at most LIMITS.dt.max. Classical Runge-Kutta
 * is stable up to 2.8 over that rate, and the engine takes the same dt, so the step itself is bounded instead
 * of being cut into sub-steps that the TOML would not show. USA in the perspective clock (2312.10794) carries
 * e^beta: its steps are that much shorter.
 */
export function largestStep(spec: Spec): number {
  return Math.min(LIMITS.dt.max, 1 / fastestRate(spec));
}

// The engine refuses e^{2 lambda t} beyond e^600; |V| bounds lambda.
const LARGEST_EXPONENT = 599;

/** When a run must end at the latest. */
export function longestTime(spec: Spec): number {
  if (spec.model.name !== "RescaledSA") return LIMITS.t1.max;
  return Math.min(LIMITS.t1.max, LARGEST_EXPONENT / (2 * Math.max(valueSize(spec), 1e-4)));
}

/** A step with some accuracy to spare. */
export function defaultStep(spec: Spec): number {
  return roundedDown(Math.min(LIMITS.dt.default, largestStep(spec) / 2));
}

/** Two digits, never above: steps that a person can read. */
export function roundedDown(value: number): number {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.floor(value / unit + 1e-9) * unit).toPrecision(2));
}

/**
 * Bound of the rates of the field, up to small factors: attention relaxes at speed |V|, and where a token
 * chooses between clusters softmax turns at up to beta/2 |V|; a perceptron adds the size of its weights.
 */
function fastestRate(spec: Spec): number {
  const { B } = drawWeights(spec);
  const size = valueSize(spec);
  const { name, beta, plus } = spec.model;
  const softmax = name === "USA" || name === "HardmaxFlow" ? 0 : (beta ?? 1) / 2;
  const turning = softmax * (B === null ? 1 : norm(B));
  const perceptron = plus === undefined ? 0 : plus.scale;
  return Math.max(size * speedOf(spec) * (1 + turning) + perceptron, 1e-3);
}

/** |V|. */
function valueSize(spec: Spec): number {
  const { V } = drawWeights(spec);
  return typeof V === "number" ? Math.abs(V) : norm(V);
}
