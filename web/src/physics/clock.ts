// Time as a multiple of the step, not as a sum that gathers rounding errors.

export class Clock {
  private step: number;
  private start = 0;
  private startSteps = 0;
  private count = 0;

  constructor(step: number) {
    this.step = step;
  }

  get steps(): number {
    return this.count;
  }

  get time(): number {
    return this.start + (this.count - this.startSteps) * this.step;
  }

  advance(count: number): void {
    this.count += count;
  }

  /** Go to a time; `steps` numbers it, the nearest whole number of steps where none is given. */
  put(time: number, steps?: number): void {
    this.start = time;
    this.count = steps ?? Math.round(time / this.step);
    this.startSteps = this.count;
  }

  /** Another step from now on. */
  change(step: number): void {
    this.put(this.time, this.count);
    this.step = step;
  }
}
