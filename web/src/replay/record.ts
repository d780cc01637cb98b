// The present history as a replay, so that a static page, or this one tomorrow, can open it again.
import type { Frame, Track } from "../app/contract.ts";
import type { Spec } from "../spec/types.ts";
import { spaceOf } from "../spec/size.ts";
import type { RunReplay, Series } from "./types.ts";
import { pack } from "./unpack.ts";

const MOST_FRAMES = 600;
const EXACT_BYTES = 24e6; // above, points are written in single precision

export interface Recording {
  spec: Spec;
  frames: Frame[];
  track: Track;
  edited: boolean;
}

export function recordReplay({ spec, frames, track, edited }: Recording): RunReplay {
  const chosen = evenly(frames.length, MOST_FRAMES);
  const kept = chosen.map((k) => frames[k] as Frame);
  const size = kept[0]?.points.length ?? 0;
  const { d } = spec.tokens;
  const points = new Float64Array(kept.length * size);
  kept.forEach((frame, k) => points.set(frame.points, k * size));
  const dtype = points.byteLength > EXACT_BYTES ? "float32" : "float64";
  return {
    kind: "run",
    title: spec.title,
    says: spec.says,
    clock: "time",
    times: kept.map((frame) => frame.time),
    space: spaceOf(spec),
    points: pack(points, [kept.length, size / d, d], dtype),
    dimension: d,
    projection: null,
    clusters: null,
    series: seriesOf(track, chosen),
    labels: null,
    spec: edited ? null : spec,
    notes: notesOf(frames.length, kept.length, edited),
  };
}

/** At most `most` of the indices below `count`, evenly spread, with the first and the last. */
export function evenly(count: number, most: number): number[] {
  const size = Math.min(count, most);
  if (size < 2) return count > 0 ? [0] : [];
  return Array.from({ length: size }, (_, k) => Math.round((k * (count - 1)) / (size - 1)));
}

function seriesOf(track: Track, chosen: number[]): Series[] {
  const named: [string, (number | null)[]][] = [
    ["energy", track.energy],
    ["clusters", track.clusters],
    ["order_parameter", track.order],
    ["mean_cosine", track.cosine],
  ];
  const picked = named.map(([name, values]) => ({ name, values: chosen.map((k) => values[k] ?? null) }));
  return picked.filter(({ values }) => values.some((value) => value !== null));
}

function notesOf(all: number, kept: number, edited: boolean): string[] {
  return [
    "Computed by the page",
    ...(kept < all ? [`${kept} of ${all} frames kept`] : []),
    ...(edited ? ["tokens or settings were changed on the way, so no one spec describes this run"] : []),
  ];
}
