// Pure functions that change one setting of a spec. What they return is a wish: `settled` makes of it a spec that
// the page and the engine accept.
import { LIMITS, type Limit } from "./bounds.ts";
import { dimension, spaceOf, tokenCount } from "./size.ts";
import type {
  LawSpec,
  Matrix,
  ModelName,
  ModelSpec,
  NormalisationSpec,
  PerceptronSpec,
  Spec,
  TokensSpec,
  WeightsSpec,
} from "./types.ts";

const CHANGED = ", changed";
const LONGEST_TITLE = 60;

export type ValuesKind = "identity" | "minus" | "diagonal" | "random";

/** Without the sentence on what to watch for, which was about other settings; the title tells that too. */
export function asChanged(spec: Spec): Spec {
  if (spec.says === "" && spec.title.endsWith(CHANGED)) return spec;
  const name = spec.title.endsWith(CHANGED) ? spec.title.slice(0, -CHANGED.length) : spec.title;
  return { ...spec, title: name.slice(0, LONGEST_TITLE) + CHANGED, says: "" };
}

/** Another model; settings it does not have are dropped, and a start it cannot use is replaced. */
export function withModel(spec: Spec, name: ModelName): Spec {
  const { beta, weights, normalisation, noise, plus } = spec.model;
  const shared: ModelSpec = { name, ...kept("weights", weights) };
  if (name !== "HardmaxFlow") shared.beta = beta ?? LIMITS.beta.default;
  if (name === "USA") shared.convention = spec.model.convention ?? "metastability";
  if (name === "SA" || name === "USA")
    Object.assign(shared, kept("normalisation", normalisation), kept("noise", noise), kept("plus", plus));
  if (name === "RescaledSA" && weights !== undefined) shared.weights = givenOnly(weights);
  const tokens = startFor(name, spec.tokens);
  return slowEnough({ ...spec, model: shared, tokens });
}

export function withBeta(spec: Spec, beta: number): Spec {
  if (spec.model.name === "HardmaxFlow") return spec;
  return slowEnough({ ...spec, model: { ...spec.model, beta: clamped(beta, LIMITS.beta) } });
}

export function withConvention(spec: Spec, convention: "perspective" | "metastability"): Spec {
  if (spec.model.name !== "USA") return spec;
  return slowEnough({ ...spec, model: { ...spec.model, convention } });
}

/** Another number of tokens; a start of given points becomes a random one. */
export function withCount(spec: Spec, count: number): Spec {
  const n = whole(count, LIMITS.n);
  const tokens = spec.tokens;
  switch (tokens.law) {
    case "arcs":
    case "mixture": {
      const smallest = Math.ceil(LIMITS.n.min / tokens.centres.length);
      const most = Math.floor(LIMITS.n.max / tokens.centres.length);
      const per_cluster = Math.min(most, Math.max(smallest, Math.round(n / tokens.centres.length)));
      return { ...spec, tokens: { ...tokens, per_cluster } };
    }
    case "equiangular":
      return { ...spec, tokens: { ...tokens, n: Math.min(n, tokens.d), correlation: 0 } };
    case "points":
      return n === tokens.points.length ? spec : { ...spec, tokens: randomStart(spec, n) };
    default:
      return { ...spec, tokens: { ...tokens, n } };
  }
}

/** The same sort of start and weights in the other dimension. */
export function withDimension(spec: Spec, d: 2 | 3): Spec {
  if (d === dimension(spec)) return spec;
  const { weights, ...model } = spec.model;
  const resized = weights === undefined ? {} : { weights: resizedWeights(weights, d) };
  return {
    ...spec,
    model: { ...model, ...resized },
    tokens: resizedStart(spec.tokens, d),
  };
}

/** Another draw of the start and of the noise. */
export function withSeed(spec: Spec, seed: number): Spec {
  const chosen = whole(seed, LIMITS.seed);
  const tokens = { ...spec.tokens };
  if ("seed" in tokens) tokens.seed = chosen;
  else if (tokens.perturb !== undefined) tokens.perturb_seed = chosen;
  return { ...spec, tokens, solve: { ...spec.solve, seed: chosen } };
}

/** Another start; one that does not fit the model is replaced by one that does. */
export function withStart(spec: Spec, tokens: TokensSpec): Spec {
  const resized = withDimension(spec, tokens.d);
  return { ...resized, tokens: startFor(spec.model.name, tokens) };
}

/** V = I, -I, a diagonal matrix or a random one. */
export function withValues(
  spec: Spec,
  kind: ValuesKind,
  options: { diagonal?: number[]; law?: LawSpec["law"]; scale?: number; seed?: number } = {},
): Spec {
  const { V: _, seed: __, ...rest } = spec.model.weights ?? {};
  const d = dimension(spec);
  const weights: WeightsSpec = { ...rest };
  if (kind === "minus") weights.V = -1;
  if (kind === "diagonal") weights.V = diagonalMatrix(options.diagonal ?? [1, 0.5, -0.5], d);
  if (kind === "random" && spec.model.name !== "RescaledSA") {
    weights.V = { law: options.law ?? "GOE", scale: options.scale ?? LIMITS.lawScale.default };
    weights.seed = options.seed ?? spec.model.weights?.seed ?? 0;
    if (Array.isArray(weights.B)) delete weights.B;
  } else if (isLaw(weights.B)) {
    weights.seed = spec.model.weights?.seed ?? 0;
    if (Array.isArray(weights.V)) delete weights.B;
  }
  return { ...spec, model: withOptional(spec.model, "weights", nonEmpty(weights)) };
}

/** The perceptron on (with these settings) or off. */
export function withPerceptron(spec: Spec, plus: PerceptronSpec | null): Spec {
  if (spec.model.name !== "SA" && spec.model.name !== "USA") return spec;
  return { ...spec, model: withOptional(spec.model, "plus", plus ?? undefined) };
}

/** Brownian noise of a temperature, or none. */
export function withNoise(spec: Spec, temperature: number | null): Spec {
  if (spec.model.name !== "SA" && spec.model.name !== "USA") return spec;
  const noise =
    temperature === null
      ? undefined
      : { kind: "brownian" as const, temperature: clamped(temperature, LIMITS.temperature) };
  return { ...spec, model: withOptional(spec.model, "noise", noise) };
}

/** Another length of step: dt of the flow, or the weight of a layer. */
export function withStep(spec: Spec, length: number): Spec {
  const { solve } = spec;
  return {
    ...spec,
    solve:
      solve.method === "fixed"
        ? { ...solve, dt: clamped(length, LIMITS.dt) }
        : { ...solve, step: clamped(length, LIMITS.step) },
  };
}

/** Where the run ends. */
export function withEnd(spec: Spec, t1: number): Spec {
  return { ...spec, solve: { ...spec.solve, t1: clamped(t1, LIMITS.t1) } };
}

/** Steps of the flow, or layers of a network. */
export function withMethod(spec: Spec, method: "fixed" | "layers"): Spec {
  const { t1, seed } = spec.solve;
  if (spec.solve.method === method) return spec;
  const solve =
    method === "fixed"
      ? { t1, method, dt: LIMITS.dt.default, seed }
      : { t1, method, step: LIMITS.step.default, seed };
  return { ...spec, solve };
}

/** Where layer norm stands; null is post-LN, the sphere dynamics of the theory. */
export function withNormalisation(spec: Spec, scheme: NormalisationSpec | null): Spec {
  if (spec.model.name !== "SA" && spec.model.name !== "USA") return spec;
  const normalisation = scheme === null ? undefined : completed(scheme);
  return { ...spec, model: withOptional(spec.model, "normalisation", normalisation) };
}

function completed({ scheme, tau, alpha }: NormalisationSpec): NormalisationSpec {
  if (scheme === "mix") return { scheme, tau: tau ?? LIMITS.tau.default };
  return scheme === "ngpt" ? { scheme, alpha: alpha ?? LIMITS.alpha.default } : { scheme };
}

/** The perspective clock of USA runs e^beta times faster: no step is short enough for a large beta. */
function slowEnough(spec: Spec): Spec {
  const { name, convention, beta } = spec.model;
  if (name !== "USA" || convention === "metastability") return spec;
  return { ...spec, model: { ...spec.model, beta: clamped(beta!, LIMITS.perspectiveBeta) } };
}

/** A start that the model can use: RescaledSA lives on R^d, SA, USA and CausalSA on the sphere. */
function startFor(name: ModelName, tokens: TokensSpec): TokensSpec {
  const flat = (tokens.space ?? (tokens.law === "box" ? "euclidean" : "sphere")) === "euclidean";
  const wants = name === "RescaledSA" ? true : name === "HardmaxFlow" ? flat : false;
  if (flat === wants) return tokens;
  const n = countOf(tokens);
  const seed = "seed" in tokens ? tokens.seed : LIMITS.seed.default;
  const d = tokens.d;
  return wants
    ? { law: "box", d, n, seed, half_width: LIMITS.halfWidth.default }
    : { law: "uniform", d, n, seed };
}

function randomStart(spec: Spec, n: number): TokensSpec {
  const d = dimension(spec);
  const seed = LIMITS.seed.default;
  return spaceOf(spec) === "sphere"
    ? { law: "uniform", d, n, seed }
    : { law: "box", d, n, seed, half_width: LIMITS.halfWidth.default };
}

function resizedStart(tokens: TokensSpec, d: 2 | 3): TokensSpec {
  const { perturb, perturb_seed } = tokens;
  const extra = { ...kept("perturb", perturb), ...kept("perturb_seed", perturb_seed) };
  switch (tokens.law) {
    case "arcs": {
      const { centres, per_cluster, width, seed } = tokens;
      const radius = clamped(2 * width, LIMITS.radius);
      const vectors = centres.map((angle) => [Math.cos(angle), Math.sin(angle), 0]);
      return { law: "mixture", d, centres: vectors, per_cluster, radius, seed, ...extra };
    }
    case "mixture":
      return { ...tokens, d, centres: tokens.centres.map((centre) => resizedVector(centre, d)) };
    case "cap": {
      const { centre, ...rest } = tokens;
      return { ...rest, d, ...(centre === undefined ? {} : { centre: resizedVector(centre, d) }) };
    }
    case "equiangular":
      return { ...tokens, d, n: Math.min(tokens.n, d), correlation: Math.max(tokens.correlation, 0) };
    case "points":
      return tokens.space === "euclidean"
        ? { ...tokens, d, points: tokens.points.map((point) => padded(point, d)) }
        : { ...tokens, d, points: tokens.points.map((p) => resizedVector(p, d)), normalise: true };
    default:
      return { ...tokens, d };
  }
}

/** The first coordinates, or with a zero added; never the zero vector. */
function resizedVector(vector: number[], d: number): number[] {
  const shorter = padded(vector, d);
  return shorter.every((entry) => entry === 0) ? padded([1], d) : shorter;
}

function padded(vector: number[], d: number): number[] {
  return Array.from({ length: d }, (_, k) => vector[k] ?? 0);
}

function resizedWeights(weights: WeightsSpec, d: number): WeightsSpec {
  const { V, B, ...rest } = weights;
  return {
    ...rest,
    ...(V === undefined ? {} : { V: Array.isArray(V) ? resizedMatrix(V, d) : V }),
    ...(B === undefined ? {} : { B: Array.isArray(B) ? resizedMatrix(B, d) : B }),
  };
}

/** The upper left block, or with a one added on the diagonal. */
function resizedMatrix(matrix: Matrix, d: number): Matrix {
  return Array.from({ length: d }, (_, i) =>
    Array.from({ length: d }, (__, j) => matrix[i]?.[j] ?? Number(i === j)),
  );
}

function diagonalMatrix(entries: number[], d: number): Matrix {
  return Array.from({ length: d }, (_, i) =>
    Array.from({ length: d }, (__, j) =>
      i === j ? clamped(entries[i] ?? 1, LIMITS.value) : 0,
    ),
  );
}

/** Without matrices drawn from laws. */
function givenOnly({ V, B }: WeightsSpec): WeightsSpec {
  return {
    ...(V === undefined || isLaw(V) ? {} : { V }),
    ...(B === undefined || isLaw(B) ? {} : { B }),
  };
}

function isLaw(value: WeightsSpec["V"] | WeightsSpec["B"]): value is LawSpec {
  return typeof value === "object" && !Array.isArray(value);
}

function countOf(tokens: TokensSpec): number {
  return tokenCount({ tokens } as Spec);
}

function nonEmpty(weights: WeightsSpec): WeightsSpec | undefined {
  return Object.keys(weights).length === 0 ? undefined : weights;
}

/** A copy with one optional field set, or left out. */
function withOptional<K extends keyof ModelSpec>(
  model: ModelSpec,
  name: K,
  value: ModelSpec[K] | undefined,
): ModelSpec {
  const { [name]: _, ...rest } = model;
  return (value === undefined ? rest : { ...rest, [name]: value }) as ModelSpec;
}

function kept<K extends string, T>(name: K, value: T | undefined): { [name in K]?: T } {
  return value === undefined ? {} : ({ [name]: value } as { [name in K]: T });
}

function clamped(value: number, limit: Limit): number {
  return Number.isFinite(value) ? Math.min(limit.max, Math.max(limit.min, value)) : limit.default;
}

function whole(value: number, limit: Limit): number {
  return Math.round(clamped(value, limit));
}
