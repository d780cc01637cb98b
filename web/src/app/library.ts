// Fetching stored runs from the page's own server, or from a file.
import type { LibraryEntry, Replay } from "../replay/types.ts";
import { checkReplay } from "../replay/unpack.ts";

const LARGEST_FILE = 400e6; // bytes

export async function fetchLibrary(): Promise<LibraryEntry[]> {
  return (await fetchJson("api/library")) as LibraryEntry[];
}

export async function fetchReplay(id: string, signal: AbortSignal): Promise<Replay> {
  return checkReplay(await fetchJson(`api/library/${encodeURIComponent(id)}`, { signal }));
}

export async function readReplayFile(file: File): Promise<Replay> {
  if (file.size > LARGEST_FILE) throw new Error(`${file.name} is larger than 400 MB.`);
  const text = await file.text();
  try {
    return checkReplay(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`${file.name} is not JSON.`);
    throw error;
  }
}

async function fetchJson(path: string, options: RequestInit = {}): Promise<unknown> {
  const answer = await fetch(new URL(path, document.baseURI), options).catch(() => {
    throw new Error("the server does not answer; is `tokenflock play` still running?");
  });
  const body: unknown = await answer.json().catch(() => null);
  if (answer.ok) return body;
  const said = (body as { message?: unknown; detail?: unknown } | null) ?? {};
  throw new Error(String(said.message ?? said.detail ?? `the server answered ${answer.status}`));
}
