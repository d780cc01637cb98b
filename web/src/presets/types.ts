// A preset: settings that show one thing, and one sentence on what to watch for.
import type { Colouring } from "../app/contract.ts";
import type { Spec } from "../spec/types.ts";

export interface Preset {
  id: string; // of the link: #preset=metastability
  title: string;
  paper: { arxiv: string; name: string } | null;
  spec: Spec; // spec.says is what to watch for
  speed: number; // steps per displayed frame
  colouring?: Colouring;
  logTime?: boolean;
}
