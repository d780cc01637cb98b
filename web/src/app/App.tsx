// The whole page, from the header to the notices.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Charts } from "../charts/Charts.tsx";
import { SweepMap } from "../charts/SweepMap.tsx";
import { SceneView } from "../scene/SceneView.tsx";
import type { Store } from "./contract.ts";
import { Controls } from "./controls/Controls.tsx";
import { ExactPanel } from "./ExactPanel.tsx";
import { ViewName } from "./fields.tsx";
import { Header } from "./Header.tsx";
import { HelpDialog } from "./HelpDialog.tsx";
import { Icon } from "./icons.tsx";
import { Notices } from "./Notices.tsx";
import { Says } from "./Says.tsx";
import { listenToKeys } from "./shortcuts.ts";
import { Tour } from "./Tour.tsx";
import { Transport } from "./Transport.tsx";
import { makeUi, type Ui } from "./ui.ts";

export function App({ store }: { store: Store }) {
  const ui = useMemo(makeUi, []);
  const name = useMemo(() => `tf${Math.random().toString(36).slice(2, 8)}-`, []);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => listenToKeys(root.current!, store, ui), [store]);
  return (
    <div ref={root} class="tf-page" data-theme={store.dark.value ? "dark" : "light"} data-mode={store.options.mode}>
      <div class="tf-all" inert={store.locked.value}>
        <Header store={store} ui={ui} />
        {ui.tour.value === null ? <Says store={store} /> : <Tour store={store} ui={ui} index={ui.tour.value} />}
        <main class="tf-main">
          <ViewName.Provider value={name}>
            <Settings store={store} ui={ui} />
          </ViewName.Provider>
          <Stage store={store} ui={ui} />
          <Measurements store={store} />
        </main>
        <HelpDialog store={store} ui={ui} />
      </div>
      <Notices store={store} />
    </div>
  );
}

function Stage({ store, ui }: { store: Store; ui: Ui }) {
  return (
    <section class="tf-stage" aria-label="Tokens">
      <div class="tf-scene">
        <SceneView store={store} />
      </div>
      <Transport store={store} />
      <button
        type="button"
        class="tf-settings-button"
        data-testid="settings"
        aria-expanded={ui.settings.value}
        onClick={() => (ui.settings.value = !ui.settings.value)}
      >
        <Icon name="sliders" /> Settings
      </button>
    </section>
  );
}

/** At the side where there is room; otherwise a sheet that comes up from below. */
function Settings({ store, ui }: { store: Store; ui: Ui }) {
  return (
    <aside class="tf-controls" data-open={ui.settings.value} aria-label="Settings">
      <button type="button" class="tf-close" aria-label="Close the settings" onClick={() => (ui.settings.value = false)}>
        <Icon name="close" />
      </button>
      <Controls store={store} />
    </aside>
  );
}

function Measurements({ store }: { store: Store }) {
  return (
    <div class="tf-charts">
      {store.sweep.value !== null && <Sweep store={store} />}
      <ExactPanel store={store} />
      {store.source.value.kind === "live" && store.edited.value && (
        <p class="tf-note">Changed on the way, so no theory curve is drawn; restart to see them again.</p>
      )}
      <Charts store={store} />
    </div>
  );
}

function Sweep({ store }: { store: Store }) {
  return (
    <div class="tf-sweep">
      <button type="button" class="tf-close" aria-label="Close the sweep" onClick={() => (store.sweep.value = null)}>
        <Icon name="close" />
      </button>
      <SweepMap store={store} />
    </div>
  );
}
