// Predictions drawn beside the measurements, each only where its hypotheses hold, with a note on how far they do.
import type { TheoryCurve } from "../app/contract.ts";
import { speedOf } from "../physics/model.ts";
import { startTokens } from "../physics/start.ts";
import { dimension, spaceOf, tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { linkAngle } from "../observe/clusters.ts";
import { renyiCentres } from "./centres.ts";
import { twoClusterAngle, twoClusterLifetime } from "./clusters.ts";
import { twoPoints } from "./collapse.ts";
import { equilibriumOrder } from "./equilibrium.ts";
import { type Attraction, equiangular } from "./equiangular.ts";
import { criticalTemperature, dominantMode, uniformEnergy } from "./uniform.ts";

/** All predictions that say something about this run. */
export function curvesFor(spec: Spec): TheoryCurve[] {
  if (spaceOf(spec) !== "sphere") return [];
  return [
    ...equiangularCurve(spec),
    ...twoClusterCurves(spec),
    ...modeLine(spec),
    ...centresLine(spec),
    ...orderLine(spec),
    ...energyLines(spec),
  ];
}

// The paper leaves the constant of delta = c beta^{-1/2} open; this one separates what stays apart (2411.04990).
const RENYI_FACTOR = 4;

/** SA and USA with V = B = I, post-LN and nothing added, on any clock. */
function isPlain(spec: Spec): boolean {
  const { name, weights, plus, normalisation } = spec.model;
  const attention = name === "SA" || name === "USA";
  const identity = (weights?.V ?? 1) === 1 && weights?.B === undefined;
  const scheme = normalisation?.scheme ?? "post";
  return attention && identity && plus === undefined && scheme === "post";
}

function hasNoise(spec: Spec): boolean {
  return (spec.model.noise?.temperature ?? 0) > 0;
}

function attractionOf(spec: Spec): Attraction {
  return { beta: spec.model.beta!, softmax: spec.model.name === "SA", speed: speedOf(spec) };
}

/** Layers are another clock than the flow that theory speaks of. */
function clockNote(spec: Spec): string {
  if (spec.solve.method === "fixed") return "";
  return " Drawn in the time of the flow; near clusters layers run 1 + step times slower.";
}

// Inner products c of a start count as one when they, and their rates e^{beta c}, differ by less than this.
const NEARLY = 0.02;

function equiangularCurve(spec: Spec): TheoryCurve[] {
  const { tokens } = spec;
  const grouped = tokens.law === "arcs" || tokens.law === "mixture";
  if (grouped || !isPlain(spec) || hasNoise(spec)) return [];
  const shared = commonCosine(spec);
  if (shared === null || Math.abs(shared.mean) >= 1 - 1e-12) return [];
  const exact = "Exact: all pairs share one inner product.";
  const nearly = `Nearly exact: inner products differ by ${shared.spread.toPrecision(1)} at the start.`;
  return [
    {
      quantity: "cosine",
      label: "equiangular ODE",
      source: "2312.10794, Thm 6.8",
      note: (shared.spread < 1e-9 ? exact : nearly) + clockNote(spec),
      at: equiangular(attractionOf(spec), tokenCount(spec), shared.mean),
    },
  ];
}

/** The inner product that all pairs of the start share, nearly; in d dimensions only up to d tokens can. */
function commonCosine(spec: Spec): { mean: number; spread: number } | null {
  const [n, d] = [tokenCount(spec), dimension(spec)];
  if (n > d) return null;
  const { points } = startTokens(spec);
  const token = (i: number): Float64Array => points.subarray(i * d, (i + 1) * d);
  const cosines: number[] = [];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) cosines.push(token(i).reduce((sum, x, k) => sum + x * token(j)[k]!, 0));
  const spread = Math.max(...cosines) - Math.min(...cosines);
  const mean = cosines.reduce((sum, cosine) => sum + cosine, 0) / cosines.length;
  const rates = Math.max(1, spec.model.beta!) * spread;
  return rates < NEARLY && mean > -1 / (n - 1) ? { mean, spread } : null;
}

function twoClusterCurves(spec: Spec): TheoryCurve[] {
  const { tokens } = spec;
  const two = (tokens.law === "arcs" || tokens.law === "mixture") && tokens.centres.length === 2;
  if (!two || !isPlain(spec) || hasNoise(spec)) return [];
  const formed = twoPoints(spec);
  const n = tokenCount(spec);
  const link = linkAngle(n, dimension(spec), "sphere");
  if (formed === null || formed.angle <= link || formed.angle > Math.PI - 1e-6) return [];
  const { time, share: p, angle } = formed;
  const q = 1 - p;
  const attraction = attractionOf(spec);
  const phi = twoClusterAngle(attraction, p, q, angle);
  const end = time + twoClusterLifetime(attraction, p, q, angle, link);
  const points = `each group is taken as one point, ${angle.toFixed(2)} rad apart`;
  const note = `From t = ${time.toPrecision(2)} on ${points}.${clockNote(spec)}`;
  const source = "2312.10794, eq. (6.9), (6.10); 2410.06833";
  return [
    {
      quantity: "cosine",
      label: "two points",
      source,
      note,
      at: (t) => {
        if (t < time) return null;
        return (n * (p * p + q * q + 2 * p * q * Math.cos(phi(t - time))) - 1) / (n - 1);
      },
    },
    {
      quantity: "clusters",
      label: `two until t = ${end.toPrecision(3)}`,
      source,
      note: `${note} They count as one from ${link.toPrecision(3)} rad on.`,
      at: (t) => (t < time ? null : t < end ? 2 : 1),
    },
  ];
}

// With fewer tokens per wavelength the start is not a nearly uniform measure to which a wave could be added.
const TOKENS_PER_WAVE = 8;

function modeLine(spec: Spec): TheoryCurve[] {
  const uniform = spec.tokens.law === "uniform" && dimension(spec) === 2;
  if (!uniform || !isPlain(spec) || hasNoise(spec)) return [];
  const mode = dominantMode(2, spec.model.beta!);
  if (tokenCount(spec) < TOKENS_PER_WAVE * mode) return [];
  return [
    {
      quantity: "clusters",
      label: `dominant mode ${mode}`,
      source: "2410.23228",
      note: "Clusters that first form from many uniform tokens; later they merge.",
      at: () => mode,
    },
  ];
}

function centresLine(spec: Spec): TheoryCurve[] {
  const { name, beta, weights, self_term, slope } = spec.model;
  const identity = (weights?.V ?? 1) === 1 && weights?.B === undefined;
  // The statement is about tokens that hear themselves, and all earlier ones by their place alone.
  const plain = identity && self_term !== false && (slope ?? 0) === 0;
  const distance = RENYI_FACTOR / Math.sqrt(beta ?? 0);
  if (name !== "CausalSA" || !plain || !(distance < Math.PI)) return [];
  const count = renyiCentres(startTokens(spec).points, dimension(spec), distance).length;
  const far = `farther than 4 beta^-1/2 = ${distance.toFixed(2)} rad from every earlier centre`;
  return [
    {
      quantity: "clusters",
      label: `${count} Rényi centres`,
      source: "2411.04990, section 5",
      note: `Tokens of this start ${far}: leaders for very long, though not for ever.`,
      at: () => count,
    },
  ];
}

function orderLine(spec: Spec): TheoryCurve[] {
  if (!hasNoise(spec) || !isPlain(spec)) return [];
  const d = dimension(spec);
  const { beta, softmax, speed } = attractionOf(spec);
  const temperature = spec.model.noise!.temperature;
  const critical = criticalTemperature(d, beta, softmax, speed);
  const above = temperature >= critical;
  const threshold = `Uniform tokens lose stability below temperature ${critical.toPrecision(3)}.`;
  if (softmax && !above) return [];
  const order = softmax ? 0 : equilibriumOrder(d, beta, speed, temperature);
  const n = tokenCount(spec);
  const size = `For many tokens; n = ${n} fluctuate by about ${(n ** -0.5).toPrecision(1)}.`;
  return [
    {
      quantity: "order",
      label: order === 0 ? "no order" : "ordered equilibrium",
      source: "2512.01868; 2606.05140",
      note: `${threshold} ${size}`,
      at: () => order,
    },
  ];
}

function energyLines(spec: Spec): TheoryCurve[] {
  const { name, beta, weights, plus } = spec.model;
  const kernel = (name === "SA" || name === "USA" || name === "CausalSA") && plus === undefined;
  if (!kernel || weights?.B !== undefined) return [];
  const most = beta === 0 ? 0.5 : Math.exp(beta!) / (2 * beta!);
  const together: TheoryCurve = {
    quantity: "energy",
    label: "all tokens together",
    source: "2312.10794, Prop. 3.4",
    note: "The largest energy there is.",
    at: () => most,
  };
  const repels = typeof weights?.V === "number" && weights.V < 0;
  if (!repels) return [together];
  const least = beta === 0 ? 0 : uniformEnergy(dimension(spec), beta!);
  return [
    {
      quantity: "energy",
      label: "uniform measure",
      source: "2312.10794, Prop. 3.4",
      note: "The smallest energy there is; n tokens stay a little above, by their own terms.",
      at: () => least,
    },
  ];
}
