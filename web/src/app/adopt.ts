// Specs of the engine (a stored run, a sweep's base) as specs of the page, or a sentence why not.
import type { PackedArray, SweepAxis, SweepReplay } from "../replay/types.ts";
import { unpack } from "../replay/unpack.ts";
import { validate } from "../spec/bounds.ts";
import type { ModelSpec, NormalisationSpec, SolveSpec, Spec, TokensSpec, WeightsSpec } from "../spec/types.ts";

type Table = Record<string, unknown>;

const MODEL_KEYS = ["name", "beta", "convention", "self_term", "slope", "noise", "plus"];
const TOKEN_KEYS = [
  ...["law", "space", "d", "n", "seed", "perturb", "perturb_seed", "radius", "centre", "scale", "half_width"],
  ...["centres", "per_cluster", "width", "correlation", "points", "normalise"],
];
const WEIGHT_KEYS = ["V", "B", "seed"];
// What an engine's spec says about weights when nothing was asked for.
const WEIGHT_DEFAULTS: Table = { heads: 1, per: "run", seed: 0 };
const STEPS = 400; // of a run whose engine chose its own
const SMALLEST_STEP = 0.005;
const LARGEST_STEP = 0.05;

/** Where a swept name lives in a spec, if the sweep does not say it. */
const PLACES: Record<string, [keyof Spec, string]> = {
  beta: ["model", "beta"],
  n: ["tokens", "n"],
  d: ["tokens", "d"],
  seed: ["tokens", "seed"],
  t1: ["solve", "t1"],
  time: ["solve", "t1"],
  dt: ["solve", "dt"],
  step: ["solve", "step"],
};

/** The page's spec of an engine's resolved spec. */
export function adoptSpec(given: unknown): Spec | string {
  const spec = withoutNulls(given);
  if (!isTable(spec) || !isTable(spec.model) || !isTable(spec.tokens) || !isTable(spec.solve)) {
    return "This run was stored without its spec, so it cannot be simulated here.";
  }
  try {
    const adopted: Spec = {
      title: String(spec.title ?? "run"),
      says: String(spec.says ?? ""),
      model: adoptModel(spec.model),
      tokens: pick(spec.tokens, TOKEN_KEYS) as unknown as TokensSpec,
      solve: adoptSolve(spec.solve),
    };
    const [problem] = validate(adopted);
    return problem === undefined ? adopted : `The page cannot simulate this run: ${problem}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The base spec of a sweep with the settings of one cell. */
export function specOfCell(sweep: SweepReplay, row: number, column: number): Spec | string {
  if (sweep.spec === null) return "This sweep was stored without its spec, so its cells cannot be watched.";
  const base = structuredClone(withoutNulls(sweep.spec)) as Table;
  const places = [
    [sweep.rows, row],
    [sweep.columns, column],
  ] as const;
  for (const [axis, position] of places) {
    if (axis.values[position] === undefined) return "This cell lies outside the sweep.";
    const settings = settingsAt(axis, position);
    if (!settings.every(([path, value]) => put(base, path, value))) {
      return `The page does not know how to set ${axis.name}, so this cell cannot be watched.`;
    }
  }
  for (const { path, values } of sweep.seeds ?? []) {
    const seed = seedAt(values, row, column);
    if (!Number.isFinite(seed)) return "The seed of this cell is not stored (yet), so the run behind it cannot be watched.";
    if (!put(base, path, seed)) return `The page does not know how to set ${path}, so this cell cannot be watched.`;
  }
  const adopted = adoptSpec(base);
  if (typeof adopted === "string") return adopted;
  return { ...adopted, title: `${sweep.title}: ${places.map(([axis, position]) => cellText(axis, position)).join(", ")}` };
}

/** The seed of a cell; a table of one column holds for all of them. */
function seedAt(values: PackedArray, row: number, column: number): number {
  const wide = values.shape[1]!;
  return unpack(values)[row * wide + Math.min(column, wide - 1)]!;
}

/** What a position of an axis sets, as paths and values; a sweep that does not say it sets its own name. */
function settingsAt({ name, values, sets }: SweepAxis, position: number): [string, unknown][] {
  if (sets === undefined || sets === null) return [[name, values[position]]];
  return Object.entries(sets).map(([path, column]) => [path, column[position]]);
}

/** A position of an axis in words: "beta = 4", or the label of several settings at once. */
export function cellText({ name, values, labels, sets }: SweepAxis, position: number): string {
  const label = labels?.[position];
  if (label === undefined) return `${name} = ${Number(values[position]?.toPrecision(6))}`;
  return Object.keys(sets ?? {}).length > 1 ? label : `${name} = ${label}`;
}

/** Whether a cell shows the tokens before they moved. */
export function atStart({ rows, columns }: SweepReplay, row: number, column: number): boolean {
  const zero = (name: string, value?: number): boolean => value === 0 && PLACES[name]?.[1] === "t1";
  return zero(rows.name, rows.values[row]) || zero(columns.name, columns.values[column]);
}

/** Sets "beta" or "model.noise.temperature" in a spec; false where there is no such place. */
function put(spec: Table, name: string, value: unknown): boolean {
  const path = name.includes(".") ? name.split(".") : PLACES[name];
  if (path === undefined) return false;
  let table: unknown = spec;
  for (const key of path.slice(0, -1)) table = isTable(table) && Object.hasOwn(table, key) ? table[key] : undefined;
  const key = path.at(-1);
  if (!isTable(table) || key === undefined || key === "__proto__") return false;
  // The start of a run is no run of length zero: it keeps the end it had.
  if (key === "t1" && value === 0) return true;
  table[key] = value;
  return true;
}

function adoptModel(given: Table): ModelSpec {
  const model = pick(given, MODEL_KEYS);
  // The engine writes the beta of common noise for every kind; to Brownian noise it means nothing.
  if (isTable(given.noise) && given.noise.kind === "brownian") model.noise = pick(given.noise, ["kind", "temperature"]);
  if (given.name === "NoisyUSA") {
    model.name = "USA";
    model.noise = { kind: "brownian", temperature: given.temperature };
  }
  const weights = adoptWeights(given.weights);
  if (weights !== null) model.weights = weights;
  if (isTable(given.normalisation) && given.normalisation.scheme !== "none") {
    model.normalisation = given.normalisation as unknown as NormalisationSpec;
  }
  return model as unknown as ModelSpec;
}

function adoptWeights(given: unknown): WeightsSpec | null {
  if (!isTable(given)) return null;
  const said = Object.keys(given).filter((key) => given[key] !== WEIGHT_DEFAULTS[key]);
  const foreign = said.find((key) => !WEIGHT_KEYS.includes(key));
  if (foreign !== undefined) {
    throw new Error(`The page has no ${foreign} among its weights, so this run cannot be simulated here.`);
  }
  return pick(given, said) as WeightsSpec;
}

function adoptSolve(given: Table): SolveSpec {
  const t1 = Number(given.t1);
  const seed = Number(given.seed ?? 0);
  // The engine's rule: without a method, a step means layers.
  const layers = given.method === undefined ? given.step !== undefined : given.method === "layers";
  if (layers) return { t1, method: "layers", step: Number(given.step), seed };
  const chosen = Math.min(Math.max(t1 / STEPS, SMALLEST_STEP), LARGEST_STEP);
  return { t1, method: "fixed", dt: given.dt === undefined ? chosen : Number(given.dt), seed };
}

function pick(given: Table, keys: readonly string[]): Table {
  return Object.fromEntries(keys.filter((key) => given[key] !== undefined).map((key) => [key, given[key]]));
}

/** TOML has no null: a missing setting and a null one mean the same. */
function withoutNulls(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(withoutNulls);
  if (!isTable(given)) return given;
  const kept = Object.entries(given).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutNulls(value)]));
}

function isTable(given: unknown): given is Table {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}
