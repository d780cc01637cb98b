// One step of each sort: classical Runge-Kutta of the flow, Euler with noise, one layer of a network.
import type { PairSums } from "./attention.ts";
import { normaliseRows } from "./linear.ts";
import type { Model } from "./model.ts";
import type { Increments } from "./noise.ts";
import { growsAt, movesRadii, shapeUpdate } from "./normalisation.ts";
import { Field, projectRows } from "./velocity.ts";

export interface State {
  points: Float64Array;
  radii: Float64Array | null;
}

export type Method = "fixed" | "layers";

/** Nodes and weights of the classical fourth-order method: stage times and their share in the sum. */
const NODES = [0, 0.5, 0.5, 1];
const SHARES = [1 / 6, 1 / 3, 1 / 3, 1 / 6];

/** Moves a state in place; owns all buffers, so a step allocates nothing. */
export class Stepper {
  readonly model: Model;
  private readonly field: Field;
  private readonly slope: State;
  private readonly stage: State;
  private readonly total: State;
  private readonly kick: Float64Array;

  constructor(model: Model, sums: PairSums) {
    this.model = model;
    this.field = new Field(model, sums);
    this.slope = emptyState(model);
    this.stage = emptyState(model);
    this.total = emptyState(model);
    this.kick = new Float64Array(model.temperature === null ? 0 : model.n * model.d);
  }

  /** One step of length dt from time t; the token `held` stays where it is. */
  advance(
    method: Method,
    state: State,
    t: number,
    dt: number,
    index: number,
    increments: Increments,
    held: number | null,
  ): void {
    if (method === "layers") this.layer(state, t, dt, index, increments, held);
    else if (this.model.temperature === null) this.rungeKutta(state, t, dt, held);
    else this.euler(state, t, dt, index, increments, held);
  }

  /** Fourth order, then the nearest point of the space. */
  private rungeKutta(state: State, t: number, dt: number, held: number | null): void {
    copyState(state, this.total);
    copyState(state, this.stage);
    for (let s = 0; s < 4; s++) {
      this.slopeAt(t + NODES[s]! * dt, this.stage, held);
      addScaled(this.total, SHARES[s]! * dt, this.slope);
      if (s === 3) break;
      copyState(state, this.stage);
      addScaled(this.stage, NODES[s + 1]! * dt, this.slope);
    }
    copyState(this.total, state);
    this.retract(state.points);
  }

  /** The engine's step with noise: diffrax's Euler, then the retraction, which makes the Ito correction. */
  private euler(
    state: State,
    t: number,
    dt: number,
    index: number,
    increments: Increments,
    held: number | null,
  ): void {
    this.slopeAt(t, state, held);
    this.drawKick(index, increments, state.points, held);
    addScaled(state, dt, this.slope);
    for (let k = 0; k < this.kick.length; k++) state.points[k]! += this.kick[k]!;
    this.retract(state.points);
  }

  /** x <- N(x + step A(x)), or the scheme's own layer, then the noise of its duration. */
  private layer(
    state: State,
    t: number,
    step: number,
    index: number,
    increments: Increments,
    held: number | null,
  ): void {
    const { d, scheme, space } = this.model;
    const push = this.slope.points;
    this.field.force(t, state.points, false, push);
    if (space === "sphere") shapeUpdate(scheme, t, push, d);
    if (held !== null) rest(push, held, d);
    if (state.radii !== null && growsAt(scheme, t)) this.grow(state, step, held);
    else for (let k = 0; k < push.length; k++) state.points[k]! += step * push[k]!;
    this.retract(state.points);
    if (this.model.temperature === null) return;
    this.drawKick(index, increments, state.points, held);
    for (let k = 0; k < push.length; k++) state.points[k]! += this.kick[k]!;
    this.retract(state.points);
  }

  /** r theta <- r theta + step G. */
  private grow(state: State, step: number, held: number | null): void {
    const d = this.model.d;
    const radii = state.radii!;
    for (let i = 0; i < radii.length; i++) {
      if (i === held) continue;
      let squared = 0;
      for (let k = i * d; k < (i + 1) * d; k++) {
        const moved = radii[i]! * state.points[k]! + step * this.slope.points[k]!;
        state.points[k] = moved;
        squared += moved * moved;
      }
      radii[i] = Math.sqrt(squared);
    }
  }

  private slopeAt(t: number, state: State, held: number | null): void {
    this.field.velocity(t, state.points, state.radii, this.slope);
    if (held === null) return;
    rest(this.slope.points, held, this.model.d);
    if (this.slope.radii !== null) this.slope.radii[held] = 0;
  }

  /** P_x sqrt(2 T) dW at the points x. */
  private drawKick(
    index: number,
    increments: Increments,
    points: Float64Array,
    held: number | null,
  ): void {
    increments(index, this.kick);
    const amplitude = Math.sqrt(2 * this.model.temperature!);
    for (let k = 0; k < this.kick.length; k++) this.kick[k]! *= amplitude;
    if (this.model.space === "sphere") projectRows(points, this.kick, this.model.d);
    if (held !== null) rest(this.kick, held, this.model.d);
  }

  private retract(points: Float64Array): void {
    if (this.model.space === "sphere") normaliseRows(points, this.model.d);
  }
}

function rest(rows: Float64Array, index: number, d: number): void {
  rows.fill(0, index * d, (index + 1) * d);
}

function emptyState(model: Model): State {
  const moving = model.space === "sphere" && movesRadii(model.scheme);
  return {
    points: new Float64Array(model.n * model.d),
    radii: moving ? new Float64Array(model.n) : null,
  };
}

function copyState(from: State, to: State): void {
  to.points.set(from.points);
  if (from.radii !== null) to.radii!.set(from.radii);
}

function addScaled(state: State, scale: number, change: State): void {
  for (let k = 0; k < state.points.length; k++) state.points[k]! += scale * change.points[k]!;
  if (state.radii === null) return;
  for (let i = 0; i < state.radii.length; i++) state.radii[i]! += scale * change.radii![i]!;
}
