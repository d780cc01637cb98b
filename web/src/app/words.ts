// Numbers and states in words, the same wherever they appear.
import { stepOf } from "../spec/size.ts";
import type { Store } from "./contract.ts";

/** A number as people write it: four digits that matter, no exponent where none is needed. */
export function short(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return "undefined";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits)));
}

/** "t = 3.20", or the layer where layers are what is counted. */
export function timeText(store: Store): string {
  const source = store.source.value;
  const { time } = store.frame.value;
  if (source.kind === "replay" && source.replay.clock === "layer") {
    const last = source.replay.times.at(-1) ?? 0;
    return `layer ${short(time)} of ${short(last)}`;
  }
  const layers = source.kind === "live" && store.spec.value.solve.method === "layers";
  const decimals = layers ? 2 : time < 100 ? 2 : time < 10_000 ? 1 : 0;
  const step = source.kind === "live" ? stepOf(store.spec.value) : 1;
  const text = `t = ${time.toFixed(step < 0.01 && time < 10 ? 3 : decimals)}`;
  return layers ? `layer ${store.stepsShown.value}, ${text}` : text;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
