// What the engine has computed and the page shows: a run, a trace of a trained model, a sweep.
// Python writes it (tokenflock/web/replay.py), as one JSON object; arrays are base64 of little-endian
// numbers, row-major.

export interface PackedArray {
  dtype: "float32" | "float64" | "int32";
  shape: number[];
  data: string; // base64
}

export interface Series {
  name: string; // "energy", "clusters", ...
  values: (number | null)[]; // one per frame
}

/** Tokens along a clock. Trajectories in d > 3 come projected on 3 axes, and say so. */
export interface RunReplay {
  kind: "run" | "trace";
  title: string;
  says: string;
  clock: "time" | "layer";
  times: number[];
  space: "sphere" | "euclidean";
  points: PackedArray; // (frames, n, 2 or 3)
  dimension: number; // d of the tokens themselves
  projection: string | null; // how d > 3 became 3, with the share of variance kept
  clusters: PackedArray | null; // (frames, n): clusters in the tokens' own dimension, where that is not drawn
  series: Series[];
  labels: string[] | null; // the text of every token (a trace)
  spec: unknown | null; // the resolved spec (a run)
  notes: string[]; // outcome, advice, what was left out or thinned
}

/** One direction of a sweep's map: numbers, or positions of words and of several settings at once. */
export interface SweepAxis {
  name: string;
  values: number[];
  labels?: string[] | null; // what stands at the positions, where they are no numbers
  sets?: Record<string, unknown[]> | null; // for each path of the spec ("model.beta") its value at each position
}

/** A seed of the first run of every cell; NaN where the cell is not computed yet. */
export interface OwnSeeds {
  path: string; // of the spec: "tokens.seed"
  values: PackedArray; // (rows, columns), or (rows, 1) where the columns share it
}

/** A statistic over a grid of settings. A cell can be watched: its settings are put into the spec. */
export interface SweepReplay {
  kind: "sweep";
  title: string;
  says: string;
  rows: SweepAxis;
  columns: SweepAxis;
  statistics: { name: string; values: PackedArray }[]; // each (rows, columns)
  seeds?: OwnSeeds[] | null; // where every cell has seeds of its own
  spec: unknown | null; // the base spec; null when a cell cannot be watched
  notes?: string[]; // what is averaged, held fixed, missing
}

export type Replay = RunReplay | SweepReplay;

/** One line of the library: what `tokenflock play FOLDER...` was given. */
export interface LibraryEntry {
  id: string;
  kind: "run" | "trace" | "sweep";
  title: string;
  detail: string;
}
