// Whether the page is dark: as chosen, or as the system says.
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";

export interface Theme {
  theme: Signal<"auto" | "light" | "dark">;
  dark: ReadonlySignal<boolean>;
  dispose(): void;
}

/** matchMedia is missing where the tests run. */
function query(text: string): MediaQueryList | null {
  return typeof matchMedia === "function" ? matchMedia(text) : null;
}

export function makeTheme(): Theme {
  const preferred = query("(prefers-color-scheme: dark)");
  const system = signal(preferred?.matches ?? false);
  const theme = signal<"auto" | "light" | "dark">("auto");
  const update = (): void => void (system.value = preferred?.matches ?? false);
  preferred?.addEventListener("change", update);
  return {
    theme,
    dark: computed(() => (theme.value === "auto" ? system.value : theme.value === "dark")),
    dispose: () => preferred?.removeEventListener("change", update),
  };
}

export function prefersStillness(): boolean {
  return query("(prefers-reduced-motion: reduce)")?.matches ?? false;
}
