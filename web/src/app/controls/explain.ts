// What else a change brought along, in words: nothing is dropped or shortened in silence.
import { whyEnded } from "../../spec/settle.ts";
import { spaceOf, stepOf, tokenCount } from "../../spec/size.ts";
import type { Spec } from "../../spec/types.ts";
import { short } from "../words.ts";
import { placeName } from "./starts.ts";

/** A sentence per side effect of going from one spec to the next. */
export function sideEffects(before: Spec, after: Spec, asked: "step" | "n" | "model" | null): string[] {
  const { name } = after.model;
  const said: string[] = [];
  const gone = (what: string, was: unknown, is: unknown): void => {
    if (was !== undefined && is === undefined) said.push(`${name} has no ${what} here, so it was switched off.`);
  };
  if (asked === "model") {
    gone("perceptron", before.model.plus, after.model.plus);
    gone("noise", before.model.noise, after.model.noise);
    gone("normalisation", before.model.normalisation, after.model.normalisation);
    gone("drawn V", before.model.weights?.V, after.model.weights?.V);
    if (spaceOf(before) !== spaceOf(after)) said.push(`${name} lives ${placeName(after)}, so it starts from new tokens.`);
  }
  if (asked !== "n" && tokenCount(before) !== tokenCount(after)) {
    said.push(`This start has ${tokenCount(after)} tokens.`);
  }
  if (asked === "n" && before.tokens.law === "points" && after.tokens.law !== "points") {
    said.push(`The ${tokenCount(before)} given tokens were replaced by ${tokenCount(after)} random ones.`);
  }
  if (asked !== "step" && before.solve.method === after.solve.method && stepOf(after) < stepOf(before)) {
    said.push(`The step was shortened to ${short(stepOf(after))}: tokens move faster now.`);
  }
  if (after.solve.t1 < before.solve.t1 * (1 - 1e-9)) said.push(earlierEnd(after));
  if (asked === "model" && after.model.beta !== before.model.beta && before.model.beta !== undefined && after.model.beta !== undefined) {
    said.push(`beta was lowered to ${short(after.model.beta)}: this clock runs e^beta times faster.`);
  }
  return said;
}

/** A sentence on a run that ends before the time that was asked for. */
export function earlierEnd(after: Spec): string {
  return `The run now ends at t = ${short(after.solve.t1)}: ${whyEnded(after)}.`;
}

/** Why a setting cannot be used with this model; null when it can. */
export function unavailable(spec: Spec, setting: "plus" | "noise" | "normalisation" | "random"): string | null {
  const { name } = spec.model;
  const full = name === "SA" || name === "USA";
  if (setting === "random") return name === "RescaledSA" ? "RescaledSA rescales with e^(tV), so it needs a given V." : null;
  if (full) return null;
  const what = { plus: "A perceptron", noise: "Noise", normalisation: "Another normalisation" }[setting];
  return `${what} goes with SA and USA; ${name} runs without.`;
}
