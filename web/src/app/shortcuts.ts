// Keys for the whole view. On a page they work wherever the focus is; in a notebook inside the view only.
import type { Store } from "./contract.ts";
import { togglePlaying } from "./Transport.tsx";
import type { Ui } from "./ui.ts";

/** Listens until the result is called. */
export function listenToKeys(root: HTMLElement, store: Store, ui: Ui): () => void {
  const target: HTMLElement | Document = store.options.mode === "notebook" ? root : document;
  const listener = (event: Event): void => press(event as KeyboardEvent, store, ui);
  target.addEventListener("keydown", listener);
  return () => target.removeEventListener("keydown", listener);
}

function press(event: KeyboardEvent, store: Store, ui: Ui): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "Escape" && isTyping(event)) return;
  if (ui.panel.peek() === "help") return;
  const act = actionOf(event.key, store, ui);
  if (act === null || (event.key === " " && isButton(event))) return;
  event.preventDefault();
  // A notebook has keys of its own, and would act on the same one.
  event.stopPropagation();
  act();
}

function actionOf(key: string, store: Store, ui: Ui): (() => void) | null {
  switch (key) {
    case " ":
      return () => togglePlaying(store);
    case ".":
      return () => store.stepOnce();
    case ",":
      return () => store.stepBack();
    case "r":
      return () => store.restart();
    case "?":
      return () => (ui.panel.value = "help");
    case "Escape":
      return closing(ui);
    default:
      return null;
  }
}

/** What lies on top closes first: a menu, the sheet with the settings, the tour behind it. */
function closing(ui: Ui): (() => void) | null {
  if (ui.panel.peek() !== null) return () => (ui.panel.value = null);
  if (ui.settings.peek()) return () => (ui.settings.value = false);
  if (ui.tour.peek() !== null) return () => (ui.tour.value = null);
  return null;
}

function origin(event: Event): Element | null {
  const [first] = event.composedPath();
  return first instanceof Element ? first : null;
}

/** Where letters and dots are text: fields, and lists that jump to what is typed. */
function isTyping(event: Event): boolean {
  const element = origin(event);
  if (element instanceof HTMLInputElement) return !["range", "checkbox"].includes(element.type);
  return element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement || (element as HTMLElement | null)?.isContentEditable === true;
}

/** Space presses a button, a box or a fold by itself. */
function isButton(event: Event): boolean {
  return origin(event)?.matches("button, summary, a, input[type=checkbox], label") ?? false;
}
