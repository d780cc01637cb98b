// One module is the page and the Jupyter widget: it mounts a view into an element and takes it away again.
import "./app/locale.ts";
import { h, render } from "preact";
import { App } from "./app/App.tsx";
import type { Store } from "./app/contract.ts";
import { openFirst } from "./app/opening.ts";
import type { Options } from "./app/options.ts";
import { createStore } from "./app/store.ts";
import { runProbe } from "./physics/probe.ts";
import styles from "./styles.css?inline";

/** The element carries its view, so that tests and notebooks can reach it. */
export interface Mounted extends HTMLElement {
  tokenflock?: { store: Store };
}

/** For tests in a browser. */
export const testing = { runProbe };

const DEFAULTS: Options = { mode: "static", version: "", replays: [] };

/** Put a view into an element; the result takes it away again. */
export function mount(element: HTMLElement, options: Partial<Options> = {}): () => void {
  const store = createStore({ ...DEFAULTS, ...options });
  const place = element as Mounted;
  place.classList.add("tokenflock");
  place.dataset.mode = store.options.mode;
  const style = document.createElement("style");
  style.textContent = styles;
  const root = document.createElement("div");
  root.className = "tf-root";
  place.replaceChildren(style, root);
  place.tokenflock = { store };
  render(h(App, { store }), root);
  const forget = openFirst(store);
  return () => {
    forget();
    render(null, root);
    store.dispose();
    place.replaceChildren();
    place.classList.remove("tokenflock");
    delete place.dataset.mode;
    delete place.tokenflock;
  };
}

/** What anywidget calls with its model. */
interface WidgetModel {
  get(name: string): unknown;
}

export default {
  render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
    const inner = document.createElement("div");
    const height = Number(model.get("height") ?? 0);
    if (height > 0) inner.style.height = `${height}px`;
    el.append(inner);
    const take = mount(inner, { mode: "widget", ...(model.get("options") as Partial<Options>) });
    return () => {
      take();
      inner.remove();
    };
  },
};

function mountPage(): void {
  const place = document.getElementById("tokenflock-page");
  if (place === null) return;
  const written = document.getElementById("tokenflock-options")?.textContent ?? "{}";
  mount(place, JSON.parse(written) as Partial<Options>);
}

// A notebook evaluates this module where there may be no such element.
if (typeof document !== "undefined") mountPage();
