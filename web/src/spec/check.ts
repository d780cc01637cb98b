// Whether an unknown value (a link, a file, a message) is a spec that the page can run.
import type { LIMITS as Limits } from "./bounds.ts";

type Fields = Record<string, unknown>;
type Bounds = typeof Limits;

const MODELS = ["SA", "USA", "CausalSA", "HardmaxFlow", "RescaledSA"];
const LAWS = ["uniform", "hemisphere", "cap", "gaussian", "box", "arcs", "mixture", "equiangular", "points"];
/** What each table may hold beyond its name. */
const MODEL_FIELDS: Record<string, string[]> = {
  SA: ["beta", "weights", "normalisation", "noise", "plus"],
  USA: ["beta", "convention", "weights", "normalisation", "noise", "plus"],
  CausalSA: ["beta", "weights", "self_term", "slope"],
  HardmaxFlow: ["weights"],
  RescaledSA: ["beta", "weights"],
};
const START_FIELDS = ["law", "space", "d", "perturb", "perturb_seed"];
const LAW_FIELDS: Record<string, string[]> = {
  uniform: ["n", "seed"],
  hemisphere: ["n", "seed"],
  cap: ["n", "seed", "radius", "centre"],
  gaussian: ["n", "seed", "scale"],
  box: ["n", "seed", "half_width"],
  arcs: ["centres", "per_cluster", "width", "seed"],
  mixture: ["centres", "per_cluster", "radius", "seed"],
  equiangular: ["n", "correlation"],
  points: ["points", "normalise"],
};

/** Sentences about what is wrong. */
export function checkSpec(value: unknown, limits: Bounds): string[] {
  const checker = new Checker(limits);
  if (!isFields(value)) return ["a spec is an object with title, says, model, tokens and solve"];
  checker.only("spec", value, ["title", "says", "model", "tokens", "solve"]);
  for (const name of ["title", "says"]) checker.text(name, value[name]);
  const parts = ["model", "tokens", "solve"].map((name) => value[name]);
  if (!parts.every(isFields)) return [...checker.wrong, "model, tokens and solve must be tables"];
  const [model, tokens, solve] = parts as [Fields, Fields, Fields];
  checker.tokens(tokens);
  if (checker.wrong.length > 0) return checker.wrong;
  checker.model(model, tokens);
  checker.solve(solve);
  return checker.wrong;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

class Checker {
  readonly wrong: string[] = [];
  private readonly limits: Bounds;

  constructor(limits: Bounds) {
    this.limits = limits;
  }

  model(model: Fields, tokens: Fields): void {
    if (!this.choice("model.name", model["name"], MODELS)) return;
    const name = model["name"] as string;
    this.only("model", model, ["name", ...MODEL_FIELDS[name]!]);
    const fast = name === "USA" && model["convention"] !== "metastability";
    const limit = fast ? this.limits.perspectiveBeta : this.limits.beta;
    if (name !== "HardmaxFlow") this.number("model.beta", model["beta"], limit);
    this.optional(model["convention"], (c) =>
      this.choice("model.convention", c, ["perspective", "metastability"]),
    );
    this.optional(model["self_term"], (s) => this.boolean("model.self_term", s));
    this.optional(model["slope"], (s) => this.number("model.slope", s, this.limits.slope));
    this.optional(model["weights"], (w) => this.weights(w, tokens["d"] as number, name));
    this.optional(model["normalisation"], (s) => this.normalisation(s));
    this.optional(model["noise"], (s) => this.noise(s));
    this.optional(model["plus"], (p) => this.perceptron(p));
    this.space(name, tokens);
  }

  private space(name: string, tokens: Fields): void {
    const space = tokens["space"] ?? (tokens["law"] === "box" ? "euclidean" : "sphere");
    if (name === "RescaledSA" && space !== "euclidean")
      this.say("RescaledSA lives on R^d; start from box, gaussian or points with space euclidean");
    if (["SA", "USA", "CausalSA"].includes(name) && space !== "sphere")
      this.say(`the page shows ${name} on the sphere, where it stays bounded; choose RescaledSA on R^d`);
  }

  private weights(value: unknown, d: number, name: string): void {
    if (!this.table("model.weights", value, ["V", "B", "seed"])) return;
    const { V, B, seed } = value;
    this.optional(seed, (s) => this.whole("model.weights.seed", s, this.limits.seed));
    if (typeof V === "number") this.number("model.weights.V", V, this.limits.value);
    else this.optional(V, (m) => this.matrix("model.weights.V", m, d));
    this.optional(B, (m) => this.matrix("model.weights.B", m, d));
    const drawn = [V, B].filter(isFields).length;
    if (drawn === 1 && (Array.isArray(V) || Array.isArray(B)))
      this.say("when one of V and B is drawn from a law, the other cannot be a given matrix");
    if (drawn > 0 && name === "RescaledSA")
      this.say("RescaledSA needs V and B given, not drawn from a law");
  }

  private matrix(path: string, value: unknown, d: number): void {
    if (!isFields(value)) return this.rows(path, value, d, d, this.limits.value);
    if (!this.table(path, value, ["law", "scale"])) return;
    this.choice(`${path}.law`, value["law"], ["Ginibre", "GOE", "Wigner"]);
    this.number(`${path}.scale`, value["scale"], this.limits.lawScale);
  }

  private normalisation(value: unknown): void {
    if (!this.table("model.normalisation", value, ["scheme", "tau", "alpha"])) return;
    const { scheme, tau, alpha } = value;
    this.choice("normalisation.scheme", scheme, ["post", "pre", "mix", "peri", "ngpt", "sqrt"]);
    if (scheme === "mix") this.number("normalisation.tau", tau, this.limits.tau);
    else if (tau !== undefined) this.say("only the mix scheme has a tau");
    if (scheme === "ngpt") this.number("normalisation.alpha", alpha, this.limits.alpha);
    else if (alpha !== undefined) this.say("only the ngpt scheme has an alpha");
  }

  private noise(value: unknown): void {
    if (!this.table("model.noise", value, ["kind", "temperature"])) return;
    this.choice("noise.kind", value["kind"], ["brownian"]);
    this.number("noise.temperature", value["temperature"], this.limits.temperature);
  }

  private perceptron(value: unknown): void {
    const fields = ["width", "seed", "scale", "gradient", "activation"];
    if (!this.table("model.plus", value, fields)) return;
    this.whole("plus.width", value["width"], this.limits.width);
    this.whole("plus.seed", value["seed"], this.limits.seed);
    this.number("plus.scale", value["scale"], this.limits.perceptronScale);
    this.boolean("plus.gradient", value["gradient"]);
    this.choice("plus.activation", value["activation"], ["relu", "gelu"]);
  }

  tokens(tokens: Fields): void {
    if (!this.choice("tokens.law", tokens["law"], LAWS)) return;
    const law = tokens["law"] as string;
    this.only("tokens", tokens, [...START_FIELDS, ...LAW_FIELDS[law]!]);
    this.whole("tokens.d", tokens["d"], this.limits.d);
    if (this.wrong.length > 0) return;
    const flat = law === "gaussian" || law === "points" ? ["sphere", "euclidean"] : ["sphere"];
    this.optional(tokens["space"], (s) =>
      this.choice("tokens.space", s, law === "box" ? ["euclidean"] : flat),
    );
    this.optional(tokens["perturb"], (p) => this.number("tokens.perturb", p, this.limits.perturb));
    this.optional(tokens["perturb_seed"], (s) =>
      this.whole("tokens.perturb_seed", s, this.limits.seed),
    );
    this.law(law, tokens, tokens["d"] as number);
  }

  private law(law: string, tokens: Fields, d: number): void {
    const { limits } = this;
    const fields = LAW_FIELDS[law]!;
    if (fields.includes("n")) this.whole("tokens.n", tokens["n"], limits.n);
    if (fields.includes("seed")) this.whole("tokens.seed", tokens["seed"], limits.seed);
    if (fields.includes("radius")) this.number("tokens.radius", tokens["radius"], limits.radius);
    if (law === "cap") this.optional(tokens["centre"], (c) => this.vector("tokens.centre", c, d));
    if (law === "gaussian") this.number("tokens.scale", tokens["scale"], limits.gaussianScale);
    if (law === "box") this.number("tokens.half_width", tokens["half_width"], limits.halfWidth);
    if (law === "arcs" || law === "mixture") this.groups(law, tokens, d);
    if (law === "equiangular") this.equiangular(tokens, d);
    if (law === "points") this.points(tokens, d);
  }

  private groups(law: string, tokens: Fields, d: number): void {
    const { centres, per_cluster } = tokens;
    this.whole("tokens.per_cluster", per_cluster, this.limits.perCluster);
    const anywhere = { min: -1e3, max: 1e3 };
    if (!Array.isArray(centres) || centres.length < 1 || centres.length > this.limits.clusters.max)
      return this.say(`tokens.centres must be a list of 1 to ${this.limits.clusters.max} centres`);
    if (law === "mixture") {
      this.rows("tokens.centres", centres, centres.length, d, anywhere);
      centres.forEach((centre) => this.vector("tokens.centres", centre, d));
    } else {
      if (d !== 2) this.say("arcs live on the circle, d = 2; use mixture on the sphere");
      centres.forEach((angle) => this.number("tokens.centres", angle, anywhere));
      this.number("tokens.width", tokens["width"], this.limits.arcWidth);
    }
    const n = centres.length * (per_cluster as number);
    if (n < this.limits.n.min || n > this.limits.n.max)
      this.say(`the clusters hold ${n} tokens; the page takes ${this.limits.n.min} to ${this.limits.n.max}`);
  }

  private equiangular(tokens: Fields, d: number): void {
    const n = tokens["n"] as number;
    this.number("tokens.correlation", tokens["correlation"], this.limits.correlation);
    if (n > d) this.say(`an equiangular start needs n <= d, got n = ${n} and d = ${d}`);
    else if ((tokens["correlation"] as number) <= -1 / (n - 1))
      this.say(`${n} tokens can only share an inner product above ${-1 / (n - 1)}`);
  }

  private points(tokens: Fields, d: number): void {
    const { points } = tokens;
    this.optional(tokens["normalise"], (n) => this.boolean("tokens.normalise", n));
    if (!Array.isArray(points)) return this.say("tokens.points must be a list of points");
    this.whole("the number of tokens.points", points.length, this.limits.n);
    this.rows("tokens.points", points, points.length, d, { min: -1e6, max: 1e6 });
    if (this.wrong.length > 0 || tokens["space"] === "euclidean") return;
    const lengths = points.map((point: number[]) => Math.hypot(...point));
    const off = tokens["normalise"] === true ? 0 : 1e-6;
    const bad = lengths.some((r) => r === 0 || (off > 0 && Math.abs(r - 1) > off));
    if (bad) this.say("tokens.points must have length 1 on the sphere; set normalise = true");
  }

  solve(solve: Fields): void {
    if (!this.choice("solve.method", solve["method"], ["fixed", "layers"])) return;
    const fixed = solve["method"] === "fixed";
    const length = fixed ? "dt" : "step";
    this.only("solve", solve, ["t1", "method", length, "seed"]);
    this.number("solve.t1", solve["t1"], this.limits.t1);
    this.number(`solve.${length}`, solve[length], fixed ? this.limits.dt : this.limits.step);
    this.whole("solve.seed", solve["seed"], this.limits.seed);
    if (this.wrong.length > 0) return;
    const steps = (solve["t1"] as number) / (solve[length] as number);
    if (steps < 1 - 1e-9) this.say(`solve.t1 must hold at least one ${length}`);
    if (steps > 1e9) this.say("this run has more than 1e9 steps; shorten t1");
    // The engine's own tolerance.
    if (!fixed && Math.abs(steps - Math.round(steps)) > 1e-6)
      this.say(`solve.t1 must be a whole number of layers; it holds ${Number(steps.toPrecision(6))} of them`);
  }

  only(path: string, fields: Fields, allowed: string[]): void {
    for (const [name, value] of Object.entries(fields))
      if (value !== undefined && !allowed.includes(name))
        this.say(`${path} has no field ${JSON.stringify(name.slice(0, 40))} here`);
  }

  text(path: string, value: unknown): void {
    if (typeof value !== "string" || value.length > 2000)
      this.say(`${path} must be a text of at most 2000 characters`);
  }

  private table(path: string, value: unknown, allowed: string[]): value is Fields {
    if (!isFields(value)) this.say(`${path} must be a table`);
    else this.only(path, value, allowed);
    return isFields(value);
  }

  private number(path: string, value: unknown, limit: { min: number; max: number }): void {
    if (typeof value !== "number" || !(value >= limit.min && value <= limit.max))
      this.say(`${path} must be a number from ${limit.min} to ${limit.max}, got ${shown(value)}`);
  }

  private whole(path: string, value: unknown, limit: { min: number; max: number }): void {
    if (!Number.isInteger(value)) this.say(`${path} must be a whole number, got ${shown(value)}`);
    else this.number(path, value, limit);
  }

  private boolean(path: string, value: unknown): void {
    if (typeof value !== "boolean") this.say(`${path} must be true or false, got ${shown(value)}`);
  }

  private choice(path: string, value: unknown, options: string[]): boolean {
    const good = typeof value === "string" && options.includes(value);
    if (!good) this.say(`${path} must be one of ${options.join(", ")}, got ${shown(value)}`);
    return good;
  }

  private vector(path: string, value: unknown, d: number): void {
    this.rows(path, [value], 1, d, { min: -1e3, max: 1e3 });
    if (Array.isArray(value) && value.every((entry) => entry === 0))
      this.say(`${path} must not be the zero vector`);
  }

  private rows(
    path: string,
    value: unknown,
    count: number,
    d: number,
    limit: { min: number; max: number },
  ): void {
    const shaped =
      Array.isArray(value) &&
      value.length === count &&
      value.every((row) => Array.isArray(row) && row.length === d);
    if (!shaped) return this.say(`${path} must be ${count} rows of ${d} numbers`);
    const good = (entry: unknown) =>
      typeof entry === "number" && entry >= limit.min && entry <= limit.max;
    if (!(value as unknown[][]).every((row) => row.every(good)))
      this.say(`${path} must hold numbers from ${limit.min} to ${limit.max}`);
  }

  private optional(value: unknown, check: (value: unknown) => unknown): void {
    if (value !== undefined) check(value);
  }

  private say(sentence: string): void {
    this.wrong.push(sentence);
  }
}

function shown(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 40);
}
