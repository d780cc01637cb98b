// The live simulation: its past, its present, and how far it may go within one displayed frame.
import { measure } from "../observe/index.ts";
import { makeSimulator, type Simulator } from "../physics/simulator.ts";
import { startTokens } from "../physics/start.ts";
import { stepOf } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import type { Backend, Frame, Measured } from "./contract.ts";
import { History } from "./history.ts";

const BUDGET = 10; // ms of stepping per displayed frame: the rest of 16 is for measuring and drawing
const GROWTH = 0.05; // of the number of steps from one frame to the next, on a logarithmic clock
const SHARE = 0.2; // of the time that measuring may take
const MANY = 1000; // tokens above which not every frame is measured
const SELDOM = 4; // and then at most every fourth

export class Live {
  spec: Spec;
  history = new History();
  position = 0;
  pace = 0; // steps per displayed frame that this machine manages, of those asked for
  simulator: Simulator;
  wanted: Backend | "auto";
  private owed = 0; // fractions of a step, for speeds below one
  private cost = 0; // ms per step, smoothed
  private measuringCost = 0; // ms per measurement, smoothed
  private unmeasured = 0; // frames since the last measurement
  private measuredLast = 0; // when that was, ms
  private held: number | null = null;

  constructor(spec: Spec, wanted: Backend | "auto") {
    this.spec = spec;
    this.wanted = wanted;
    this.simulator = makeSimulator(spec, wanted);
    this.begin(startTokens(spec), 0);
  }

  /** From the start of a spec, which may have other tokens. */
  restart(spec: Spec, wanted: Backend | "auto" = this.wanted): void {
    const next = makeSimulator(spec, wanted);
    this.simulator.dispose();
    this.simulator = next;
    this.spec = spec;
    this.wanted = wanted;
    this.cost = 0;
    this.measuringCost = 0;
    this.held = null;
    this.begin(startTokens(spec), 0);
  }

  /** These tokens are the present, and there is no past. */
  begin(frame: Frame, steps: number): void {
    this.simulator.put(frame, steps);
    this.history = new History();
    this.history.push({ frame, steps, measured: this.measure(frame) });
    this.position = 0;
    this.owed = 0;
  }

  /**
   * Go on, asked for `speed` steps; with `logarithmic` no frame adds more than a share to the time so far,
   * so that a chart over log t has its beginning too. False when the numbers stopped being numbers.
   */
  tick(speed: number, logarithmic = false): boolean {
    this.goOnFromShown();
    this.owed += speed;
    const asked = Math.floor(this.owed);
    this.owed -= asked;
    if (asked < 1) return true;
    const affordable = this.cost > 0 ? Math.max(1, Math.floor(BUDGET / this.cost)) : 1;
    this.pace = Math.min(asked, affordable);
    const gentle = logarithmic ? Math.ceil(GROWTH * (this.simulator.steps + 1)) : Infinity;
    const steps = Math.min(this.pace, gentle, this.stepsToEnd());
    const began = performance.now();
    this.simulator.advance(steps);
    const frame = this.present();
    const each = (performance.now() - began) / steps;
    this.cost = this.cost === 0 ? each : 0.8 * this.cost + 0.2 * each;
    return this.record(frame, this.dueForMeasuring());
  }

  /** The same tokens on another backend; the past, and which frame of it is shown, stay. */
  useBackend(wanted: Backend | "auto"): void {
    const { frame, steps } = this.history.last;
    const next = makeSimulator(this.spec, wanted);
    next.put(frame, steps);
    this.simulator.dispose();
    this.simulator = next;
    this.wanted = wanted;
    this.cost = 0;
  }

  /** Exactly `count` steps as one frame, whatever they cost. */
  advance(count: number): boolean {
    this.goOnFromShown();
    this.simulator.advance(count);
    return this.record(this.present(), true);
  }

  /** Whether the present is where the spec ends; going on beyond is allowed. */
  atEnd(): boolean {
    return Math.abs(this.simulator.time - this.spec.solve.t1) < stepOf(this.spec) / 2;
  }

  /** Another model for the same tokens, from the shown frame on. */
  change(spec: Spec): void {
    this.goOnFromShown();
    this.simulator.change(spec);
    this.spec = spec;
    this.cost = 0;
    const { frame, steps } = this.history.last;
    this.history.replaceLast({ frame, steps, measured: this.measure(frame) });
  }

  drag(index: number, point: number[]): void {
    this.goOnFromShown();
    const { frame, steps } = this.history.last;
    const d = this.simulator.d;
    const points = frame.points.slice();
    points.set(point.slice(0, d), index * d);
    const moved = { ...frame, points };
    if (this.held !== index) this.simulator.hold(index);
    this.held = index;
    this.simulator.put(moved, steps);
    const measured = this.simulator.n <= MANY ? this.measure(moved) : this.history.last.measured;
    this.history.replaceLast({ frame: moved, steps, measured });
  }

  release(): void {
    if (this.held === null) return;
    this.held = null;
    this.simulator.hold(null);
    this.measuredAt(this.position, true);
  }

  /** What is read off a frame of the past; measured now if it was passed over. */
  measuredAt(position: number, again = false): Measured {
    const entry = this.history.at(position);
    if (entry.measured !== null && !again) return entry.measured;
    const measured = this.measure(entry.frame);
    this.history.setMeasured(position, measured);
    return measured;
  }

  /** The newest measurement at or before the present; never waits. */
  latest(): Measured {
    for (let k = this.position; k > Math.max(this.position - 256, 0); k--) {
      const { measured } = this.history.at(k);
      if (measured !== null) return measured;
    }
    return this.measuredAt(this.position);
  }

  dispose(): void {
    this.simulator.dispose();
  }

  private goOnFromShown(): void {
    if (this.position === this.history.length - 1) return;
    this.history.truncate(this.position);
    const { frame, steps } = this.history.last;
    this.simulator.put(frame, steps);
  }

  private present(): Frame {
    const { time, points, radii } = this.simulator;
    return { time, points: points.slice(), radii: radii === null ? null : radii.slice() };
  }

  private record(frame: Frame, measured: boolean): boolean {
    if (!frame.points.every(Number.isFinite) || frame.radii?.every(Number.isFinite) === false) {
      const { frame: good, steps } = this.history.last;
      this.simulator.put(good, steps);
      return false;
    }
    this.unmeasured = measured ? 0 : this.unmeasured + 1;
    const { steps } = this.simulator;
    this.history.push({ frame, steps, measured: measured ? this.measure(frame) : null });
    this.position = this.history.length - 1;
    return true;
  }

  private measure(frame: Frame): Measured {
    const began = performance.now();
    const found = measure(this.spec, frame);
    this.measuredLast = performance.now();
    const took = this.measuredLast - began;
    this.measuringCost = this.measuringCost === 0 ? took : 0.8 * this.measuringCost + 0.2 * took;
    return found;
  }

  private dueForMeasuring(): boolean {
    const least = this.simulator.n > MANY ? SELDOM : 1;
    const rested = performance.now() - this.measuredLast;
    return this.unmeasured + 1 >= least && rested * SHARE >= this.measuringCost;
  }

  /** So that a run stops at its own end instead of jumping over it. */
  private stepsToEnd(): number {
    const left = Math.round((this.spec.solve.t1 - this.simulator.time) / stepOf(this.spec));
    return left > 0 ? left : Infinity;
  }
}
