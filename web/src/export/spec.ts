// The spec that gives what is shown, for `tokenflock run`.
import type { Store } from "../app/contract.ts";
import { fromHere, restartProblem } from "../app/exact.ts";
import type { Spec } from "../spec/types.ts";

/** Why no spec gives what is shown; null where one does. */
export function specProblem(store: Store): string | null {
  const known = store.known.value;
  if (typeof known === "string") return known;
  return store.source.value.kind === "live" ? restartProblem(store) : null;
}

/** The spec of what is shown: from its own start, or from these tokens when it was changed on the way. */
export function shownSpec(store: Store): Spec {
  const spec = store.known.peek();
  if (typeof spec === "string") throw new Error(spec);
  if (store.source.peek().kind === "replay") return spec;
  const { time } = store.frame.peek();
  if (store.edited.peek()) return fromHere(spec, store.frame.peek(), store.d.peek());
  return { ...spec, solve: { ...spec.solve, t1: Math.max(spec.solve.t1, time) } };
}
