// What the page is told when it is put in its place.
import type { Replay } from "../replay/types.ts";

export interface Options {
  mode: "served" | "static" | "widget";
  version: string;
  replays: Replay[]; // shown at once (a static page or a widget made from a run)
}
