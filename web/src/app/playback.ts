// A replay on the page: all its frames are there from the beginning, and playing moves along them.
import { rankClusters } from "../observe/clusters.ts";
import { measureReplay } from "../observe/index.ts";
import type { RunReplay } from "../replay/types.ts";
import { framesOf, unpack } from "../replay/unpack.ts";
import type { Frame, Measured, Track } from "./contract.ts";

const WHOLE = 600; // displayed frames (ten seconds) that a run of many times takes
const LAYER = 36; // displayed frames that one layer is shown, when there are few

export class Playback {
  readonly replay: RunReplay;
  readonly frames: Frame[];
  readonly track: Track;
  position = 0;
  private readonly measured: (Measured | null)[];
  private readonly clusters: Float64Array | null; // of all frames, one after the other
  private owed = 0;

  constructor(replay: RunReplay) {
    this.replay = replay;
    this.frames = framesOf(replay.times, replay.points);
    this.measured = this.frames.map(() => null);
    this.clusters = replay.clusters === null ? null : unpack(replay.clusters);
    this.track = this.readTrack();
  }

  /** One displayed frame further; false at the end. */
  tick(speed: number): boolean {
    const natural = Math.min(this.frames.length / WHOLE, 1 / 6);
    this.owed += speed * Math.max(natural, 1 / LAYER);
    const whole = Math.floor(this.owed);
    this.owed -= whole;
    this.position = Math.min(this.position + whole, this.frames.length - 1);
    return this.position < this.frames.length - 1;
  }

  measuredAt(position: number): Measured {
    const found = this.measured[position] ?? this.measure(position);
    this.measured[position] = found;
    return found;
  }

  private measure(position: number): Measured {
    const { space, points } = this.replay;
    const [, n = 0, d = 2] = points.shape;
    const seen = measureReplay(space, d, this.frames[position] as Frame);
    if (this.clusters === null) return seen;
    const { labels, sizes } = rankClusters(this.clusters.subarray(position * n, (position + 1) * n));
    return { ...seen, labels, sizes, clusters: sizes.length };
  }

  /** The engine's own series where the replay has them; the page's measurement elsewhere. */
  private readTrack(): Track {
    const { times, series } = this.replay;
    const stored = (name: string) => series.find((one) => one.name === name)?.values;
    const read = (value: (measured: Measured) => number | null) =>
      times.map((_, k) => value(this.measuredAt(k)));
    return {
      times,
      energy: stored("energy") ?? times.map(() => null),
      clusters: stored("clusters") ?? read((measured) => measured.clusters),
      order: stored("order_parameter") ?? read((measured) => measured.order),
      cosine: stored("mean_cosine") ?? read((measured) => measured.cosine),
    };
  }
}
