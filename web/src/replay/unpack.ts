// Replays as the page uses them: arrays of numbers and frames, checked before they are believed.
import type { Frame } from "../app/contract.ts";
import type { PackedArray, Replay, RunReplay, Series, SweepAxis, SweepReplay } from "./types.ts";

const BYTES = { float32: 4, float64: 8, int32: 4 } as const;
const MOST = 512e6; // bytes of one array

/** Numbers of a packed array, row-major. */
export function unpack(packed: PackedArray): Float64Array {
  const size = packed.shape.reduce((product, extent) => product * extent, 1);
  const bytes = bytesOf(packed.data);
  if (bytes.length !== size * BYTES[packed.dtype]) {
    throw new Error(`an array of shape ${packed.shape.join(" x ")} came with ${bytes.length} bytes`);
  }
  if (packed.dtype === "float64") return new Float64Array(bytes.buffer);
  const view = packed.dtype === "float32" ? new Float32Array(bytes.buffer) : new Int32Array(bytes.buffer);
  return Float64Array.from(view);
}

export function pack(values: Float64Array, shape: number[], dtype: "float64" | "float32" = "float64"): PackedArray {
  const stored = dtype === "float64" ? values : Float32Array.from(values);
  const bytes = new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
  return { dtype, shape, data: base64Of(bytes) };
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return bytes;
}

export function base64Of(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let k = 0; k < bytes.length; k += 8192) {
    parts.push(String.fromCharCode(...bytes.subarray(k, k + 8192)));
  }
  return btoa(parts.join(""));
}

/** One frame per time. */
export function framesOf(times: number[], points: PackedArray, radii?: PackedArray): Frame[] {
  const flat = unpack(points);
  const [, n = 0, d = 0] = points.shape;
  const lengths = radii === undefined ? null : unpack(radii);
  return times.map((time, k) => ({
    time,
    points: flat.slice(k * n * d, (k + 1) * n * d),
    radii: lengths === null ? null : lengths.slice(k * n, (k + 1) * n),
  }));
}

/** A replay that came from a file or a server; throws a sentence when it is not one. */
export function checkReplay(given: unknown): Replay {
  const one = given as Partial<RunReplay & Omit<SweepReplay, "kind">> | null;
  if (typeof one !== "object" || one === null) throw new Error("this file holds no replay");
  const kind = (given as { kind?: unknown }).kind;
  if (kind === "sweep") return checkSweep(given as SweepReplay);
  if (kind === "run" || kind === "trace") return checkRun(given as RunReplay);
  throw new Error("this file holds no replay: its kind must be run, trace or sweep");
}

function checkRun(run: RunReplay): RunReplay {
  const shape = checkArray(run.points, "points");
  const [frames = 0, n = 0, d = 0] = shape;
  const fits = shape.length === 3 && Array.isArray(run.times) && run.times.length === frames;
  if (!fits || frames < 1 || n < 1 || (d !== 2 && d !== 3)) {
    throw new Error("the points of a replay must have the shape (times, tokens, 2 or 3)");
  }
  if (!run.times.every((time, k) => Number.isFinite(time) && time >= (run.times[k - 1] ?? time))) {
    throw new Error("the times of a replay must be numbers that grow");
  }
  if (run.space !== "sphere" && run.space !== "euclidean") throw new Error("the replay names no space");
  const labels = listOf(run.labels, "labels");
  if (labels.length > 0 && labels.length !== n) throw new Error(`the replay labels ${labels.length} tokens and has ${n}`);
  const clusters = run.clusters ?? null;
  if (clusters !== null && String(checkArray(clusters, "clusters")) !== String([frames, n])) {
    throw new Error("the clusters of a replay must have the shape (times, tokens)");
  }
  return {
    ...run,
    clusters,
    title: String(run.title ?? "Replay"),
    says: String(run.says ?? ""),
    clock: run.clock === "layer" ? "layer" : "time",
    dimension: Number.isInteger(run.dimension) ? run.dimension : d,
    projection: typeof run.projection === "string" ? run.projection : null,
    series: listOf(run.series, "series").map(checkSeries).filter(({ values }) => values.length === frames),
    labels: labels.length > 0 ? labels.map(String) : null,
    spec: run.spec ?? null,
    notes: listOf(run.notes, "notes").map(String),
  };
}

/** A list that may be missing. */
function listOf<T>(given: T[] | null | undefined, name: string): T[] {
  if (given !== null && given !== undefined && !Array.isArray(given)) throw new Error(`the ${name} of a replay must be a list`);
  return given ?? [];
}

function checkSeries(series: Series): Series {
  const fits = Array.isArray(series?.values) && series.values.every((value) => value === null || Number.isFinite(value));
  if (!fits) throw new Error(`the series ${String(series?.name)} of the replay is not a list of numbers`);
  return { name: String(series.name), values: series.values };
}

function checkSweep(sweep: SweepReplay): SweepReplay {
  const rows = checkAxis(sweep.rows);
  const columns = checkAxis(sweep.columns);
  if (rows < 1 || columns < 1 || !Array.isArray(sweep.statistics) || sweep.statistics.length < 1) {
    throw new Error("a sweep needs rows, columns and a statistic");
  }
  for (const one of sweep.statistics) {
    const name = String(one?.name);
    const shape = checkArray(one?.values, name);
    if (shape[0] !== rows || shape[1] !== columns) {
      throw new Error(`the statistic ${name} does not have one value per cell`);
    }
  }
  for (const one of listOf(sweep.seeds, "seeds")) {
    const [high, wide, ...more] = checkArray(one?.values, "a seed of the sweep");
    if (typeof one.path !== "string" || high !== rows || (wide !== columns && wide !== 1) || more.length > 0) {
      throw new Error("the seeds of a sweep must be one per cell, or one per row");
    }
  }
  const notes = listOf(sweep.notes, "notes").map(String);
  return { ...sweep, title: String(sweep.title), says: String(sweep.says ?? ""), spec: sweep.spec ?? null, notes };
}

function checkAxis(axis: SweepAxis | undefined): number {
  const { name, values } = axis ?? {};
  const fits = typeof name === "string" && Array.isArray(values) && values.every(Number.isFinite);
  if (!fits) throw new Error("the rows and columns of a sweep must be named lists of numbers");
  const besides = [axis?.labels ?? [], ...Object.values(axis?.sets ?? {})];
  if (!besides.every((list) => Array.isArray(list) && (list.length === 0 || list.length === values.length))) {
    throw new Error(`the labels and settings of ${name} must be lists as long as its values`);
  }
  return values.length;
}

function checkArray(packed: PackedArray | undefined, name: string): number[] {
  const known = Object.hasOwn(BYTES, packed?.dtype ?? "") && typeof packed?.data === "string" && Array.isArray(packed.shape);
  if (!known || !packed.shape.every((extent) => Number.isInteger(extent) && extent >= 0)) {
    throw new Error(`${name} is not an array of numbers`);
  }
  const size = packed.shape.reduce((product, extent) => product * extent, BYTES[packed.dtype]);
  if (size > MOST) throw new Error(`${name} is too large for the page: ${size} bytes`);
  if (!holds(packed.data, size)) throw new Error(`${name} does not hold the ${size} bytes that its shape says`);
  return packed.shape;
}

/** Whether a text is base64 of that many bytes, without unpacking it. */
function holds(base64: string, bytes: number): boolean {
  const padding = base64.endsWith("==") ? 2 : Number(base64.endsWith("="));
  return base64.length === 4 * Math.ceil(bytes / 3) && padding === (3 - (bytes % 3)) % 3 && /^[A-Za-z0-9+/]*={0,2}$/.test(base64);
}
