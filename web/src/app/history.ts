// The past of a run: frames and what was read off them, within a budget of memory.
import type { Frame, Measured, Track } from "./contract.ts";

export interface Entry {
  frame: Frame;
  steps: number; // of the simulator, so that it can go on from here
  measured: Measured | null;
}

export interface Capacity {
  bytes: number;
  frames: number;
}

export const CAPACITY: Capacity = { bytes: 96e6, frames: 4000 };

export function emptyTrack(): Track {
  return { times: [], energy: [], clusters: [], order: [], cosine: [] };
}

/**
 * Entries in the order of time. The last one is the present and is always there; before it, every
 * `stride`-th recorded frame is kept. When the budget is spent the stride doubles and every other kept
 * frame goes, so the past stays evenly spaced and its first frame stays.
 */
export class History {
  track: Track = emptyTrack();
  private kept: (Entry & { ordinal: number })[] = [];
  private stride = 1;
  private readonly capacity: Capacity;

  constructor(capacity: Capacity = CAPACITY) {
    this.capacity = capacity;
  }

  get length(): number {
    return this.kept.length;
  }

  at(position: number): Entry {
    const entry = this.kept[Math.min(Math.max(position, 0), this.kept.length - 1)];
    if (entry === undefined) throw new Error("the history is empty");
    return entry;
  }

  get last(): Entry {
    return this.at(this.kept.length - 1);
  }

  push(entry: Entry): void {
    const before = this.kept.at(-1);
    const ordinal = before === undefined ? 0 : before.ordinal + 1;
    if (before !== undefined && before.ordinal % this.stride !== 0) this.dropLast();
    this.kept.push({ ...entry, ordinal });
    this.write(this.kept.length - 1);
    if (this.full()) this.thin();
  }

  /** Another present at the same place: a dragged token, another model. */
  replaceLast(entry: Entry): void {
    const ordinal = this.kept.at(-1)?.ordinal ?? 0;
    this.kept[Math.max(this.kept.length - 1, 0)] = { ...entry, ordinal };
    this.write(this.kept.length - 1);
  }

  setMeasured(position: number, measured: Measured): void {
    this.at(position).measured = measured;
    this.write(position);
  }

  /** Forget what comes after a position. */
  truncate(position: number): void {
    this.kept.length = Math.min(this.kept.length, position + 1);
    const { times, energy, clusters, order, cosine } = this.track;
    const cut = <T>(values: T[]): T[] => values.slice(0, this.kept.length);
    this.track = {
      times: cut(times),
      energy: cut(energy),
      clusters: cut(clusters),
      order: cut(order),
      cosine: cut(cosine),
    };
  }

  private full(): boolean {
    const { points, radii } = this.last.frame;
    const n = this.last.measured?.labels.length ?? points.length / 2;
    const each = points.byteLength + (radii?.byteLength ?? 0) + 4 * n + 200;
    return this.kept.length > this.capacity.frames || this.kept.length * each > this.capacity.bytes;
  }

  private thin(): void {
    if (this.kept.length < 4) return;
    this.stride *= 2;
    const end = this.kept.length - 1;
    this.kept = this.kept.filter((entry, k) => entry.ordinal % this.stride === 0 || k === end);
    this.track = emptyTrack();
    for (let k = 0; k < this.kept.length; k++) this.write(k);
  }

  private dropLast(): void {
    this.kept.pop();
    for (const values of Object.values(this.track)) values.pop();
  }

  private write(k: number): void {
    const { frame, measured } = this.at(k);
    this.track.times[k] = frame.time;
    this.track.energy[k] = measured?.energy ?? null;
    this.track.clusters[k] = measured?.clusters ?? null;
    this.track.order[k] = measured?.order ?? null;
    this.track.cosine[k] = measured?.cosine ?? null;
  }
}
