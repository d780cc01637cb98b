// What is open on the page: no part of the run, so no part of the store or the link.
import { type Signal, signal } from "@preact/signals";

export type Panel = "export" | "library" | "help" | null;

export interface Ui {
  panel: Signal<Panel>;
  settings: Signal<boolean>; // the sheet with the controls, on narrow views
  tour: Signal<number | null>; // step of the tour
}

export function makeUi(): Ui {
  return { panel: signal<Panel>(null), settings: signal(false), tour: signal<number | null>(null) };
}
