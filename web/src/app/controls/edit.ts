// One way for all controls to change the settings.
import type { Spec } from "../../spec/types.ts";
import type { Store } from "../contract.ts";
import { earlierEnd, sideEffects } from "./explain.ts";

export type Asked = "step" | "n" | "model" | null;

/** Change the settings and say what else changed with them. */
export function edit(store: Store, change: (spec: Spec) => Spec, asked: Asked = null): void {
  const before = store.spec.peek();
  store.changeModel(change);
  const said = sideEffects(before, store.spec.peek(), asked);
  if (said.length > 0) store.message.value = said.join(" ");
}

/** Another end of the run; says when it cannot be as late as that. */
export function extend(store: Store, t1: number): void {
  store.extend(t1);
  const spec = store.spec.peek();
  if (spec.solve.t1 < t1 * (1 - 1e-9)) store.message.value = earlierEnd(spec);
}
