// One way for all controls to change the settings.
import type { Spec } from "../../spec/types.ts";
import type { Store } from "../contract.ts";
import { sideEffects } from "./explain.ts";

export type Asked = "step" | "n" | "model" | null;

/** Change the settings and say what else changed with them. */
export function edit(store: Store, change: (spec: Spec) => Spec, asked: Asked = null): void {
  const before = store.spec.peek();
  store.changeModel(change);
  const said = sideEffects(before, store.spec.peek(), asked);
  if (said.length > 0) store.message.value = said.join(" ");
}
