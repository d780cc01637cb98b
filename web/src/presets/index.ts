// All presets, in the order of the chooser. The first one is what a stranger sees.
import { CLUSTERING } from "./clustering.ts";
import type { Preset } from "./types.ts";

export const PRESETS: Preset[] = [...CLUSTERING];

export function findPreset(id: string): Preset | undefined {
  return PRESETS.find((preset) => preset.id === id);
}
