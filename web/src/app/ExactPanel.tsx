// "Compute exactly": the engine's run beside the live one. Only where a server stands behind the page.
import type { Exact, Store } from "./contract.ts";
import { exactNote } from "./exact.ts";

const UNDER_WAY: Exact["status"][] = ["queued", "compiling", "running"];

export function ExactPanel({ store }: { store: Store }) {
  if (store.options.mode !== "served" || store.source.value.kind === "replay") return null;
  const run = store.exact.value;
  const busy = run !== null && UNDER_WAY.includes(run.status);
  return (
    <section class="tf-exact" aria-label="Exact run">
      <div class="tf-exact-row">
        {busy ? (
          <button type="button" data-testid="cancel-exact" onClick={() => store.cancelExact()}>
            Cancel
          </button>
        ) : (
          <button
            type="button"
            data-testid="compute-exactly"
            title="The Python engine computes the same settings in double precision, a flow with steps chosen for accuracy"
            onClick={() => store.computeExactly()}
          >
            Compute exactly
          </button>
        )}
        {busy && <progress max={1} aria-label="Exact run" {...(run.status === "running" ? { value: run.fraction } : {})} />}
      </div>
      <p class="tf-note" role="status" data-testid="exact-status" data-status={run?.status ?? "none"}>
        {run === null ? exactNote(store) : run.message}
      </p>
    </section>
  );
}
