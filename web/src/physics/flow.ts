// The simulator: a model, a clock and a state, with the sums over tokens made by a backend.
import type { Backend, Frame } from "../app/contract.ts";
import { stepOf } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import type { PairSums } from "./attention.ts";
import { Clock } from "./clock.ts";
import { type Model, modelOf } from "./model.ts";
import { brownian, type Increments } from "./noise.ts";
import type { Simulator } from "./simulator.ts";
import { hasRadii, ones, startTokens } from "./start.ts";
import { type State, Stepper } from "./steps.ts";

/** Makes the sums of a model, and closes what they share. */
export interface SumsSource {
  make(model: Model): PairSums;
  close(): void;
}

export class FlowSimulator implements Simulator {
  private spec: Spec;
  private sums: PairSums;
  private stepper: Stepper;
  private state: State;
  private increments: Increments;
  private held: number | null = null;
  private readonly source: SumsSource;
  private readonly clock: Clock;
  private readonly givenIncrements: Increments | undefined;

  /** `increments` replaces the seeded noise (tests feed the engine's). */
  constructor(spec: Spec, source: SumsSource, increments?: Increments) {
    const { points, radii } = startTokens(spec);
    const model = modelOf(spec);
    this.spec = spec;
    this.source = source;
    this.givenIncrements = increments;
    this.state = { points, radii };
    this.sums = source.make(model);
    this.stepper = new Stepper(model, this.sums);
    this.clock = new Clock(stepOf(spec));
    this.increments = this.noiseOf(spec);
  }

  get backend(): Backend {
    return this.sums.backend;
  }

  get n(): number {
    return this.stepper.model.n;
  }

  get d(): number {
    return this.stepper.model.d;
  }

  get time(): number {
    return this.clock.time;
  }

  get steps(): number {
    return this.clock.steps;
  }

  get points(): Float64Array {
    return this.state.points;
  }

  get radii(): Float64Array | null {
    return this.state.radii;
  }

  advance(count: number): void {
    const { method } = this.spec.solve;
    const dt = stepOf(this.spec);
    for (let k = 0; k < count; k++) {
      const { time, steps } = this.clock;
      this.stepper.advance(method, this.state, time, dt, steps, this.increments, this.held);
      this.clock.advance(1);
    }
  }

  put(frame: Frame, steps?: number): void {
    this.state.points.set(frame.points);
    if (this.state.radii !== null) {
      if (frame.radii === null) this.state.radii.fill(1);
      else this.state.radii.set(frame.radii);
    }
    this.clock.put(frame.time, steps);
  }

  hold(index: number | null): void {
    this.held = index;
  }

  change(spec: Spec): void {
    const { points, radii } = this.state;
    const model = modelOf(spec);
    this.sums.dispose();
    this.spec = spec;
    this.sums = this.source.make(model);
    this.stepper = new Stepper(model, this.sums);
    this.state = { points, radii: hasRadii(spec) ? (radii ?? ones(this.n)) : null };
    this.increments = this.noiseOf(spec);
    this.clock.change(stepOf(spec));
  }

  dispose(): void {
    this.sums.dispose();
    this.source.close();
  }

  private noiseOf(spec: Spec): Increments {
    return this.givenIncrements ?? brownian(spec.solve.seed, stepOf(spec));
  }
}
