// What the colours mean, in one line under the scene.
import type { Store } from "../app/contract.ts";
import type { Legend as LegendState } from "./colours.ts";
import { tokenName } from "./labels.ts";
import { cividis, gradient, loneColour, toCss, viridis } from "./palette.ts";

export function Legend({ store, legend }: { store: Store; legend: LegendState | null }) {
  return (
    <div class="tfs-legend" data-testid="scene-legend">
      <ColourLegend store={store} legend={legend} />
      <Chosen store={store} />
    </div>
  );
}

function ColourLegend({ store, legend }: { store: Store; legend: LegendState | null }) {
  if (legend === null) return null;
  if (legend.kind === "hint") return <span>{legend.text}</span>;
  if (legend.kind === "token") return <Ramp from="token 1" to={`${legend.count}`} map={gradient(viridis)} />;
  if (legend.kind === "attention") {
    const name = tokenName(legend.token, store.labels.value);
    return <Ramp from={`attention of ${name}: 0`} to={legend.most.toPrecision(2)} map={gradient(cividis)} />;
  }
  return (
    <>
      {legend.entries.map(({ colour, size }, i) => (
        <span key={i} class="tfs-entry" title={`a cluster of ${size} tokens`}>
          <Dot colour={toCss(colour)} />
          {size}
        </span>
      ))}
      {legend.more > 0 && <span>and {legend.more} more</span>}
      {legend.lone > 0 && (
        <span class="tfs-entry" title="tokens in no cluster">
          <Dot colour={toCss(loneColour(store.dark.value))} />
          {legend.lone} alone
        </span>
      )}
    </>
  );
}

function Dot({ colour }: { colour: string }) {
  return <i class="tfs-dot" style={{ background: colour }} />;
}

function Ramp({ from, to, map }: { from: string; to: string; map: string }) {
  return (
    <span class="tfs-entry">
      {from} <i class="tfs-ramp" style={{ background: map }} /> {to}
    </span>
  );
}

function Chosen({ store }: { store: Store }) {
  const index = store.selected.value;
  if (index === null || index >= store.n.value) return null;
  const { labels, sizes } = store.measured.value;
  const size = sizes[labels[index] ?? -1] ?? 1;
  return (
    <span class="tfs-entry" data-testid="scene-chosen">
      <i class="tfs-dot tfs-ring" />
      {tokenName(index, store.labels.value)} {size > 1 ? `in a cluster of ${size}` : "alone"}
    </span>
  );
}
