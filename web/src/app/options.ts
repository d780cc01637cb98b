// What the page is told when it is put in its place.
import type { Replay } from "../replay/types.ts";

export interface Options {
  mode: "served" | "static" | "notebook";
  version: string;
  replays: Replay[]; // shown at once (a static page or one made from a run)
  whole?: boolean; // in a notebook: as high as what is in it, instead of scrolling inside
}
