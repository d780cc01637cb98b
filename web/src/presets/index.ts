// All presets, in the order of the chooser. The first one is what a stranger sees.
import { CAUSAL } from "./causal.ts";
import { CLUSTERING } from "./clustering.ts";
import { MECHANISMS } from "./mechanisms.ts";
import { METASTABILITY } from "./metastability.ts";
import { PLANE } from "./plane.ts";
import { SYNCHRONY } from "./synchrony.ts";
import type { Preset } from "./types.ts";

export const PRESETS: Preset[] = [...CLUSTERING, ...METASTABILITY, ...CAUSAL, ...PLANE, ...SYNCHRONY, ...MECHANISMS];

export function findPreset(id: string): Preset | undefined {
  return PRESETS.find((preset) => preset.id === id);
}
