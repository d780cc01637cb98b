// One module is the page, served, in a file or in a notebook: it mounts a view into an element and takes it
// away again.
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
  place.toggleAttribute("data-whole", store.options.whole === true);
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
    delete place.dataset.whole;
    delete place.tokenflock;
  };
}

function mountPage(): void {
  const place = document.getElementById("tokenflock-page");
  if (place === null) return;
  const written = document.getElementById("tokenflock-options")?.textContent ?? "{}";
  const options = JSON.parse(written) as Partial<Options>;
  mount(place, options);
  if (options.whole === true) fitFrame(place);
}

/** The frame in a notebook becomes as high as the page in it; it is of the same origin, unless it is shut in. */
function fitFrame(place: HTMLElement): void {
  const frame = window.frameElement as HTMLElement | null;
  if (frame === null) return;
  const fit = (): void => {
    frame.style.height = `${Math.ceil(place.getBoundingClientRect().height)}px`;
  };
  new ResizeObserver(fit).observe(place);
}

// Tests evaluate this module where there may be no such element.
if (typeof document !== "undefined") mountPage();
