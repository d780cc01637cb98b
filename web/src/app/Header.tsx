// The top of the page: its name, what is shown, and what can be done with it.
import { PRESETS } from "../presets/index.ts";
import type { Preset } from "../presets/types.ts";
import type { Store } from "./contract.ts";
import { copyLink } from "./copyLink.ts";
import { ExportMenu } from "./ExportMenu.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { LibraryMenu } from "./LibraryMenu.tsx";
import { visitPreset } from "./opening.ts";
import type { Ui } from "./ui.ts";

const THEMES = { auto: "light", light: "dark", dark: "auto" } as const;
const THEME_ICONS: Record<keyof typeof THEMES, IconName> = { auto: "auto", light: "sun", dark: "moon" };

export function Header({ store, ui }: { store: Store; ui: Ui }) {
  return (
    <header class="tf-header">
      <Name />
      <PresetChooser store={store} />
      <nav aria-label="Page">
        <button type="button" class="tf-tour-button" data-testid="tour" onClick={() => (ui.tour.value = 0)}>
          Tour
        </button>
        {store.options.mode !== "notebook" && <LinkButton store={store} />}
        <ExportMenu store={store} ui={ui} />
        <LibraryMenu store={store} ui={ui} />
        <ThemeButton store={store} />
        <button
          type="button"
          class="tf-help-button"
          data-testid="help"
          aria-label="Help"
          title="Keys and words (?)"
          onClick={() => (ui.panel.value = "help")}
        >
          <span aria-hidden="true">?</span>
        </button>
      </nav>
    </header>
  );
}

function Name() {
  return (
    <div class="tf-name">
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <circle cx="12" cy="12" r="10" fill="none" stroke="currentColor" stroke-width="1.4" opacity="0.45" />
        <circle cx="19.6" cy="6" r="2.6" fill="#e69f00" />
        <circle cx="17.4" cy="3.9" r="2.2" fill="#e69f00" />
        <circle cx="3.2" cy="9" r="2.6" fill="#56b4e9" />
        <circle cx="12.6" cy="21.6" r="2.3" fill="#009e73" />
      </svg>
      <h1>tokenflock</h1>
    </div>
  );
}

/** Presets by paper, in the order in which they are listed. */
function byPaper(): [string, Preset[]][] {
  const groups = new Map<string, Preset[]>();
  for (const preset of PRESETS) {
    const name = preset.paper === null ? "More" : `${preset.paper.name} (${preset.paper.arxiv})`;
    groups.set(name, [...(groups.get(name) ?? []), preset]);
  }
  return [...groups];
}

function PresetChooser({ store }: { store: Store }) {
  const live = store.source.value.kind === "live";
  const current = live ? (store.preset.value ?? "") : "";
  const own = live ? "Your own settings" : "A replay";
  const choose = (id: string): void => {
    const preset = PRESETS.find((one) => one.id === id);
    if (preset !== undefined) visitPreset(store, preset);
  };
  return (
    <select
      class="tf-presets"
      data-testid="preset"
      aria-label="Preset"
      title="What to look at"
      value={current}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {current === "" && <option value="">{own}</option>}
      {byPaper().map(([paper, presets]) => (
        <optgroup key={paper} label={paper}>
          {presets.map((preset) => (
            <option key={preset.id} value={preset.id}>
              {preset.title}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  );
}

function LinkButton({ store }: { store: Store }) {
  return (
    <button
      type="button"
      data-testid="link"
      title="Copy a link that reproduces this very state"
      onClick={() => void copyLink(store)}
    >
      <Icon name="link" />
      <span>Copy link</span>
    </button>
  );
}

function ThemeButton({ store }: { store: Store }) {
  const theme = store.theme.value;
  return (
    <button
      type="button"
      data-testid="theme"
      aria-label={`Colours: ${theme}`}
      title={`Colours: ${theme}; click for ${THEMES[theme]}`}
      onClick={() => (store.theme.value = THEMES[theme])}
    >
      <Icon name={THEME_ICONS[theme]} />
    </button>
  );
}
