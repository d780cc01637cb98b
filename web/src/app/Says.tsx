// Under the header: what is on the screen, and what to watch for. Always visible.
import { findPreset } from "../presets/index.ts";
import type { Store } from "./contract.ts";
import { adoptSpec } from "./adopt.ts";

export function Says({ store }: { store: Store }) {
  return (
    <section class="tf-says" aria-label="What to watch for">
      {store.source.value.kind === "live" ? <LiveSays store={store} /> : <ReplaySays store={store} />}
    </section>
  );
}

function LiveSays({ store }: { store: Store }) {
  const preset = findPreset(store.preset.value ?? "");
  const { title, says } = store.spec.value;
  if (preset === undefined) {
    return (
      <>
        <h2>{says === "" ? "Your own settings" : title}</h2>
        <p data-testid="says">{says === "" ? "Press play and watch the tokens." : says}</p>
      </>
    );
  }
  return (
    <>
      <h2>{preset.title}</h2>
      <p data-testid="says">
        <b>Watch for:</b> {says}{" "}
        {preset.paper !== null && (
          <a href={`https://arxiv.org/abs/${preset.paper.arxiv}`} target="_blank" rel="noreferrer" title={preset.paper.name}>
            arXiv {preset.paper.arxiv}
          </a>
        )}
      </p>
    </>
  );
}

function ReplaySays({ store }: { store: Store }) {
  const source = store.source.value;
  if (source.kind === "live") return null;
  const { title, says, projection, notes, spec, kind } = source.replay;
  const adopted = kind === "run" && spec !== null ? adoptSpec(spec) : null;
  return (
    <>
      <h2>{title}</h2>
      <p data-testid="says">{[says, projection, ...notes].filter(Boolean).join(" · ")}</p>
      <div class="tf-says-actions">
        {typeof adopted === "string" && <small class="tf-note">{adopted}</small>}
        {adopted !== null && typeof adopted !== "string" && (
          <button type="button" data-testid="simulate" onClick={() => store.setSpec(adopted)}>
            Simulate it live
          </button>
        )}
        <button type="button" data-testid="back-to-live" onClick={() => store.backToLive()}>
          Back to the live run
        </button>
      </div>
    </>
  );
}
