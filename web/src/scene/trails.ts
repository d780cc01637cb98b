// The short tails of tokens: where they stood in the last shown frames.
import type { Trails } from "./layer.ts";

const MOST_FRAMES = 24;
const MOST_PIECES = 16_000;
const JUMP = 0.35; // of the scene's radius in one frame: time was skipped, and a straight line would be wrong
export const MOST_TOKENS_WITH_TRAILS = 1_000;

export class TrailKeeper {
  private frames: Float32Array[] = [];
  private time = Number.NaN;

  /** Remember a shown frame. Going back in time, a jump, or another number of tokens starts anew. */
  add(time: number, world: Float32Array): void {
    if (time === this.time) return;
    const last = this.frames[0];
    const follows = time > this.time && last?.length === world.length && largestMove(last, world) < JUMP;
    if (!follows) this.frames = [];
    this.frames.unshift(world);
    this.frames.length = Math.min(this.frames.length, framesKept(world.length / 3));
    this.time = time;
  }

  forget(): void {
    this.frames = [];
    this.time = Number.NaN;
  }

  pieces(colours: Float32Array): Trails | null {
    const steps = this.frames.length - 1;
    const count = colours.length / 3;
    if (steps < 1 || this.frames[0]!.length !== colours.length) return null;
    const trails = emptyTrails(count * steps);
    for (let step = 0; step < steps; step += 1) {
      const [newer, older] = [this.frames[step]!, this.frames[step + 1]!];
      for (let i = 0; i < count; i += 1) {
        const piece = step * count + i;
        trails.ends.set(newer.subarray(3 * i, 3 * i + 3), 6 * piece);
        trails.ends.set(older.subarray(3 * i, 3 * i + 3), 6 * piece + 3);
        trails.colours.set(colours.subarray(3 * i, 3 * i + 3), 6 * piece);
        trails.colours.set(colours.subarray(3 * i, 3 * i + 3), 6 * piece + 3);
        trails.ages[2 * piece] = step / steps;
        trails.ages[2 * piece + 1] = (step + 1) / steps;
      }
    }
    return trails;
  }
}

function largestMove(from: Float32Array, to: Float32Array): number {
  let most = 0;
  for (let i = 0; i < to.length; i += 1) most = Math.max(most, Math.abs(to[i]! - from[i]!));
  return most;
}

function framesKept(count: number): number {
  return Math.max(2, Math.min(MOST_FRAMES, Math.floor(MOST_PIECES / Math.max(1, count))));
}

function emptyTrails(pieces: number): Trails {
  return {
    ends: new Float32Array(6 * pieces),
    colours: new Float32Array(6 * pieces),
    ages: new Float32Array(2 * pieces),
  };
}
