// Keys, and the few words one needs.
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";
import type { Store } from "./contract.ts";
import type { Ui } from "./ui.ts";

const KEYS: [string, string][] = [
  ["Space", "play or pause"],
  [". and ,", "one step on, one frame back"],
  ["r", "restart"],
  ["?", "this help"],
  ["Esc", "close what is open"],
  ["Arrows, + and -", "turn and zoom, when the scene has the focus"],
  ["[ and ]", "choose a token there; Shift and an arrow key move it"],
];
const WORDS: [string, string][] = [
  ["Token", "a point on a sphere: what a transformer carries for one word, after layer norm."],
  ["Attention", "every token moves towards those it hears; it hears those that point in its direction, the more so the larger β is."],
  ["Cluster", "tokens linked by small angles: below 0.1 radians, and less where tokens are many, so that half a neighbour lies within it by chance (rule “spacing”); distances below 0.1 in R^d."],
  ["Energy", "how closely the tokens sit together, as the papers define it; attention with V = I only raises it."],
  ["Metastable", "almost at rest for a time that grows exponentially with β, although not at the end."],
];

export function HelpDialog({ store, ui }: { store: Store; ui: Ui }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = ui.panel.value === "help";
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="tf-dialog" aria-label="Help" data-testid="help-dialog" onClose={() => closed(ui)}>
      <button type="button" class="tf-close" aria-label="Close the help" onClick={() => dialog.current?.close()}>
        <Icon name="close" />
      </button>
      <h2>What you see</h2>
      <p>
        Tokens on a sphere listen to each other, as in a transformer, and flock together. Drag a token, drag the background to
        turn the view, move a slider while it runs.
      </p>
      <Terms entries={WORDS} />
      <h2>Keys</h2>
      <Terms entries={KEYS} keys />
      <p class="tf-note">tokenflock {store.options.version}</p>
    </dialog>
  );
}

function closed(ui: Ui): void {
  if (ui.panel.peek() === "help") ui.panel.value = null;
}

function Terms({ entries, keys = false }: { entries: [string, string][]; keys?: boolean }) {
  return (
    <dl>
      {entries.map(([term, text]) => (
        <div key={term}>
          <dt>{keys ? <kbd>{term}</kbd> : term}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
