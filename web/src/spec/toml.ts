// The TOML spec that `tokenflock run` accepts. The engine's specs are strict: numbers that are real must look
// real (4.0, not 4), and whole numbers whole.
import { spaceOf, stepOf } from "./size.ts";
import type { Spec, WeightsSpec } from "./types.ts";

const MOST_SAVES = 200;
const DEFAULT_MAX_STEPS = 100_000;

/** Fields that are whole numbers in the engine's spec; every other number is written as a real one. */
const WHOLE = new Set(["n", "d", "seed", "perturb_seed", "per_cluster", "max_steps"]);

/** The spec as TOML; `full` adds what to save, so that the run shows what the page shows. */
export function toToml(spec: Spec, full = true): string {
  const { weights, normalisation, noise, plus, ...model } = spec.model;
  const tables = [
    `title = ${quoted(spec.title.slice(0, 80) || "run")}\nsays = ${quoted(spec.says)}`,
    table("model", model),
    weights === undefined ? "" : table("model.weights", writtenWeights(weights)),
    normalisation === undefined ? "" : table("model.normalisation", normalisation),
    noise === undefined ? "" : table("model.noise", noise),
    plus === undefined ? "" : table("model.plus", plus, ["width"]),
    table("tokens", spec.tokens),
    table("solve", { ...spec.solve, ...longRun(spec) }),
    full ? saveTable(spec) : "",
  ];
  return `${tables.filter((text) => text !== "").join("\n\n")}\n`;
}

/** The seed of weights belongs to drawn matrices: the engine refuses it beside given ones. */
function writtenWeights(weights: WeightsSpec): WeightsSpec {
  const drawn = [weights.V, weights.B].some((w) => typeof w === "object" && !Array.isArray(w));
  const { seed: _, ...given } = weights;
  return drawn ? weights : given;
}

function longRun(spec: Spec): { max_steps?: number } {
  const steps = Math.ceil(spec.solve.t1 / stepOf(spec)) + 1;
  return steps > DEFAULT_MAX_STEPS ? { max_steps: steps } : {};
}

/** Save times are whole steps, at most MOST_SAVES of them, dividing the run. */
export function saveEvery(spec: Spec): number {
  const steps = Math.max(1, Math.round(spec.solve.t1 / stepOf(spec)));
  return Math.ceil(steps / MOST_SAVES) * stepOf(spec);
}

function saveTable(spec: Spec): string {
  const sphere = spaceOf(spec) === "sphere";
  const threshold = sphere ? 'link = "spacing"' : "distance = 0.1";
  const hasEnergy = sphere && spec.model.name !== "HardmaxFlow";
  const observed = [
    ...(hasEnergy ? ['"energy"'] : []),
    `{ name = "clusters", ${threshold} }`,
    '"order_parameter"',
  ];
  return `[save]\nevery = ${real(saveEvery(spec))}\nobserve = [${observed.join(", ")}]`;
}

function table(name: string, fields: object, whole: string[] = []): string {
  const lines = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key} = ${written(value, WHOLE.has(key) || whole.includes(key))}`);
  return [`[${name}]`, ...lines].join("\n");
}

function written(value: unknown, whole: boolean): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") return whole ? BigInt(value).toString() : real(value);
  if (Array.isArray(value)) return `[${value.map((entry) => written(entry, whole)).join(", ")}]`;
  const fields = Object.entries(value as object).map(
    ([key, entry]) => `${key} = ${written(entry, WHOLE.has(key))}`,
  );
  return `{ ${fields.join(", ")} }`;
}

/** The shortest decimal that reads back as the same float64, with a point or an exponent. */
function real(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** A basic TOML string; control characters are escaped. */
function quoted(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&").replace(/[\u0000-\u001f\u007f]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return `"${escaped}"`;
}
