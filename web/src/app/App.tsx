// The whole page, from the header to the notices.
import { useMemo, useRef } from "preact/hooks";
import { Charts } from "../charts/Charts.tsx";
import { SweepMap } from "../charts/SweepMap.tsx";
import { SceneView } from "../scene/SceneView.tsx";
import type { Store } from "./contract.ts";
import { Notices } from "./Notices.tsx";
import { Transport } from "./Transport.tsx";
import { makeUi } from "./ui.ts";

export function App({ store }: { store: Store }) {
  const ui = useMemo(makeUi, []);
  const root = useRef<HTMLDivElement>(null);
  void ui;
  return (
    <div ref={root} class="tf-page" data-theme={store.dark.value ? "dark" : "light"} data-mode={store.options.mode}>
      <main class="tf-main">
        <section class="tf-stage" aria-label="Tokens">
          <SceneView store={store} />
          <Transport store={store} />
        </section>
        <section class="tf-charts" aria-label="Measurements">
          <Charts store={store} />
          {store.sweep.value !== null && <SweepMap store={store} />}
        </section>
      </main>
      <Notices store={store} />
    </div>
  );
}
