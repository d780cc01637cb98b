// What is measured, beside what theory says.
import plotStyles from "uplot/dist/uPlot.min.css?inline";
import type { Store } from "../app/contract.ts";
import { linkAngle } from "../observe/clusters.ts";
import { AttentionMap } from "./AttentionMap.tsx";
import styles from "./charts.css?inline";
import { differenceInWords, OTHER_PATH } from "./difference.ts";
import { Histogram } from "./Histogram.tsx";
import { TimeChart } from "./TimeChart.tsx";

export function Charts({ store }: { store: Store }) {
  const log = store.logTime;
  const source = store.source.value;
  const known = store.known.value;
  const clock = source.kind === "replay" ? source.replay.clock : "time";
  return (
    <section class="tfc" data-dark={store.dark.value} aria-label="Measurements">
      <style>{plotStyles + styles}</style>
      <div class="tfc-bar">
        {clock === "time" && (
          <label>
            <input type="checkbox" checked={log.value} onChange={(event) => (log.value = event.currentTarget.checked)} />
            logarithmic time
          </label>
        )}
        <Difference store={store} />
      </div>
      <div class="tfc-grid">
        <TimeChart store={store} title={`Energy against ${clock}`} quantities={["energy"]} logTime={log} absent="This run has no energy to show." />
        <TimeChart store={store} title={`Clusters against ${clock}${linked(store)}`} quantities={["clusters"]} logTime={log} absent="Clusters were not counted." />
        <TimeChart store={store} title={`Alignment against ${clock}`} quantities={["order", "cosine"]} logTime={log} absent="Nothing was measured yet." />
        <Histogram store={store} />
        {typeof known === "string" ? <NoAttention reason={known} /> : <AttentionMap store={store} />}
      </div>
    </section>
  );
}

/** The linking angle of live tokens; a replay's clusters may be those of its own run. */
function linked(store: Store): string {
  if (store.source.value.kind !== "live") return "";
  const space = store.space.value;
  const link = linkAngle(store.n.value, store.d.value, space).toPrecision(2);
  return space === "sphere" ? `, linked below ${link} rad (spacing)` : `, linked below ${link}`;
}

function NoAttention({ reason }: { reason: string }) {
  return (
    <figure class="tfc-card" data-testid="no-attention">
      <figcaption>Attention: token i attends to token j</figcaption>
      <p class="tfc-note">Not shown. {reason}</p>
    </figure>
  );
}

function Difference({ store }: { store: Store }) {
  const frame = store.frame.value;
  const exact = store.exactFrame.value;
  if (exact === null || exact.points.length !== frame.points.length) return null;
  const noisy = store.spec.value.model.noise !== undefined;
  const saved = store.exact.value?.frames.includes(exact) ?? false;
  return (
    <p class="tfc-difference" data-testid="difference">
      {noisy ? OTHER_PATH : differenceInWords(frame, exact, saved, store.d.value)}
    </p>
  );
}
