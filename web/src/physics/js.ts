// The plain-JavaScript simulator: float64, any model of the page.
import type { Frame } from "../app/contract.ts";
import { stepOf } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { Clock } from "./clock.ts";
import { modelOf } from "./model.ts";
import { brownian, type Increments } from "./noise.ts";
import type { Simulator } from "./simulator.ts";
import { hasRadii, ones, startTokens } from "./start.ts";
import { type State, Stepper } from "./steps.ts";

export class JsSimulator implements Simulator {
  readonly backend = "js";
  private spec: Spec;
  private stepper: Stepper;
  private state: State;
  private increments: Increments;
  private held: number | null = null;
  private readonly clock: Clock;
  private readonly givenIncrements: Increments | undefined;

  /** `increments` replaces the seeded noise (tests feed the engine's). */
  constructor(spec: Spec, increments?: Increments) {
    const { points, radii } = startTokens(spec);
    this.spec = spec;
    this.givenIncrements = increments;
    this.state = { points, radii };
    this.stepper = new Stepper(modelOf(spec));
    this.clock = new Clock(stepOf(spec));
    this.increments = this.noiseOf(spec);
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
    this.spec = spec;
    this.stepper = new Stepper(modelOf(spec));
    this.state = { points, radii: hasRadii(spec) ? (radii ?? ones(this.n)) : null };
    this.increments = this.noiseOf(spec);
    this.clock.change(stepOf(spec));
  }

  dispose(): void {
    this.held = null;
  }

  private noiseOf(spec: Spec): Increments {
    return this.givenIncrements ?? brownian(spec.solve.seed, stepOf(spec));
  }
}
