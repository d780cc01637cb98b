// Runs, traces and sweeps that were computed before: those of the server, those that came with the page, a file.
import { useEffect } from "preact/hooks";
import type { Replay } from "../replay/types.ts";
import type { Store } from "./contract.ts";
import { fetchLibrary, fetchReplay, readReplayFile } from "./library.ts";
import { Menu } from "./Menu.tsx";
import type { Ui } from "./ui.ts";
import { plural } from "./words.ts";

type Work = (signal: AbortSignal) => Promise<Replay> | Replay;

const KINDS = { run: "run", trace: "trace of a trained model", sweep: "sweep" } as const;

export function LibraryMenu({ store, ui }: { store: Store; ui: Ui }) {
  const open = ui.panel.value === "library";
  useEffect(() => {
    if (open && store.options.mode === "served") void refresh(store);
  }, [open]);
  const show = (title: string, work: Work) => () => {
    ui.panel.value = null;
    void openReplay(store, title, work);
  };
  const empty = store.library.value.length === 0 && store.options.replays.length === 0;
  return (
    <Menu ui={ui} panel="library" icon="folder" label="Open" title="Open a run, a trace or a sweep that was computed before">
      {store.options.replays.map((replay, k) => (
        <Entry key={`embedded-${k}`} test={`replay-${k}`} title={replay.title} detail={detailOf(replay)} act={show(replay.title, () => replay)} />
      ))}
      {store.library.value.map(({ id, title, kind, detail }) => (
        <Entry key={id} test={`library-${id}`} title={title} detail={[KINDS[kind], detail].filter(Boolean).join(" · ")} act={show(title, (signal) => fetchReplay(id, signal))} />
      ))}
      {empty && <p class="tf-note">{emptyNote(store)}</p>}
      <label class="tf-item tf-file">
        <b>Open a file</b>
        <small>a replay exported by this page (JSON)</small>
        <input
          type="file"
          accept=".json,application/json"
          data-testid="open-file"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file !== undefined) show(file.name, () => readReplayFile(file))();
          }}
        />
      </label>
    </Menu>
  );
}

function Entry({ test, title, detail, act }: { test: string; title: string; detail: string; act(): void }) {
  return (
    <button type="button" class="tf-item" data-testid={test} onClick={act}>
      <b>{title}</b>
      <small>{detail}</small>
    </button>
  );
}

function emptyNote(store: Store): string {
  return store.options.mode === "served"
    ? "No stored runs were found. Give their folder to the command: tokenflock play FOLDER"
    : "This page came without stored runs. Serve it with `tokenflock play FOLDER` to browse a folder.";
}

function detailOf(replay: Replay): string {
  if (replay.kind === "sweep") return `sweep over ${replay.rows.name} and ${replay.columns.name}`;
  return `${KINDS[replay.kind]}, ${plural(replay.points.shape[1] ?? 0, "token")}, ${plural(replay.times.length, "frame")}`;
}

async function refresh(store: Store): Promise<void> {
  try {
    store.library.value = await fetchLibrary();
  } catch (error) {
    store.message.value = sentence(error);
  }
}

/** A worker of the server may have to load the engine first, so this says that it is under way. */
async function openReplay(store: Store, title: string, work: Work): Promise<void> {
  const stop = new AbortController();
  store.busy.value = { label: `Opening ${title}`, fraction: null, cancel: () => stop.abort() };
  const cancelled = new Promise<null>((leave) => stop.signal.addEventListener("abort", () => leave(null)));
  try {
    const replay = await Promise.race([work(stop.signal), cancelled]);
    if (replay !== null) store.open(replay);
  } catch (error) {
    if (!stop.signal.aborted) store.message.value = sentence(error);
  } finally {
    store.busy.value = null;
  }
}

function sentence(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `This could not be opened: ${reason}`;
}
