// What one can take along: a picture, a video, the spec, the run.
import { exportPicture } from "../export/picture.ts";
import { shownSpec, specProblem } from "../export/spec.ts";
import { exportVideo } from "../export/video.ts";
import { toToml } from "../spec/toml.ts";
import type { Store } from "./contract.ts";
import { copyLink } from "./copyLink.ts";
import { copyText, download, fileName } from "./download.ts";
import { Menu } from "./Menu.tsx";
import type { Ui } from "./ui.ts";

export function ExportMenu({ store, ui }: { store: Store; ui: Ui }) {
  const live = store.source.value.kind === "live";
  // Asked only while it is seen: of an edited run the answer depends on the shown frame.
  const refused = ui.panel.value === "export" ? specProblem(store) : null;
  const specDetail = live ? "TOML for: tokenflock run" : "TOML for: tokenflock run, in the page's fixed steps";
  const act = (work: () => Promise<void> | void) => () => {
    ui.panel.value = null;
    void attempt(store, work);
  };
  return (
    <Menu ui={ui} panel="export" icon="export" label="Export" title="Take a picture, a video, the spec or the run along">
      <Item test="export-png" text="Picture" detail="PNG of the scene" act={act(() => savePicture(store))} />
      <Item test="export-video" text="Video" detail="MP4 or WebM of the run so far" act={act(() => saveVideo(store))} />
      <Item test="export-toml" text="Spec as a file" detail={specDetail} refused={refused} act={act(() => saveToml(store))} />
      {refused === null && <Item test="copy-toml" text="Copy the spec" detail="TOML into the clipboard" act={act(() => copyToml(store))} />}
      {live && store.options.mode !== "notebook" && (
        <Item test="export-link" text="Copy link" detail="Opens at this very moment" act={act(() => copyLink(store))} />
      )}
      <Item test="export-json" text="Replay" detail="JSON that this page opens again" act={act(() => saveReplay(store))} />
    </Menu>
  );
}

interface ItemProps {
  test: string;
  text: string;
  detail: string;
  refused?: string | null; // a sentence why it cannot be had now
  act(): void;
}

function Item({ test, text, detail, refused = null, act }: ItemProps) {
  return (
    <button type="button" class="tf-item" data-testid={test} disabled={refused !== null} onClick={act}>
      <b>{text}</b>
      <small>{refused ?? detail}</small>
    </button>
  );
}

async function attempt(store: Store, work: () => Promise<void> | void): Promise<void> {
  try {
    await work();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if ((error as { name?: string }).name !== "AbortError") store.message.value = `The export failed: ${reason}`;
  }
}

function titleOf(store: Store): string {
  const source = store.source.peek();
  return source.kind === "live" ? store.spec.peek().title : source.replay.title;
}

async function savePicture(store: Store): Promise<void> {
  download(await exportPicture(store), fileName(titleOf(store), "png"));
}

async function saveVideo(store: Store): Promise<void> {
  const under = store.busy.peek();
  if (under !== null) {
    store.message.value = `One thing after the other: ${under.label} is still under way.`;
    return;
  }
  const stop = new AbortController();
  const report = (fraction: number): void => {
    store.busy.value = { label: "Making a video", fraction, cancel: () => stop.abort() };
  };
  report(0);
  try {
    const { blob, extension } = await exportVideo(store, report, stop.signal);
    if (!stop.signal.aborted) download(blob, fileName(titleOf(store), extension));
  } finally {
    store.busy.value = null;
  }
}

function saveToml(store: Store): void {
  const spec = shownSpec(store);
  download(new Blob([toToml(spec)], { type: "application/toml" }), fileName(spec.title, "toml"));
}

async function copyToml(store: Store): Promise<void> {
  const copied = await copyText(toToml(shownSpec(store)));
  store.message.value = copied
    ? "Spec copied: save it as run.toml, then `tokenflock run run.toml`."
    : "The browser did not allow copying; use the file instead.";
}

function saveReplay(store: Store): void {
  const replay = store.recorded();
  download(new Blob([JSON.stringify(replay)], { type: "application/json" }), fileName(replay.title, "replay.json"));
}
