// The colour of every token, and the legend that explains it.
import type { Colouring } from "../app/contract.ts";
import type { ClusterColours } from "./clusterColours.ts";
import { categorical, cividis, type Colour, loneColour, viridis } from "./palette.ts";

export type Legend =
  | { kind: "cluster"; entries: { colour: Colour; size: number }[]; more: number; lone: number }
  | { kind: "token"; count: number }
  | { kind: "attention"; most: number; token: number }
  | { kind: "hint"; text: string };

export interface Coloured {
  colours: Float32Array; // n * 3
  legend: Legend;
}

const LEGEND_ENTRIES = 8;

export interface ColouringInputs {
  count: number;
  labels: Int32Array;
  sizes: readonly number[];
  colouring: Colouring;
  keeper: ClusterColours;
  selected: number | null;
  attention: ((index: number) => Float32Array) | string; // a sentence where there is no model to ask
  dark: boolean;
}

export function colourTokens(inputs: ColouringInputs): Coloured {
  if (inputs.colouring === "token") return byToken(inputs.count);
  if (inputs.colouring === "attention") return byAttention(inputs);
  return byCluster(inputs);
}

function byCluster({ count, labels, sizes, keeper, dark }: ColouringInputs): Coloured {
  const slots = keeper.assign(labels, sizes);
  const colours = paint(count, (i) => slotColour(slots[i] ?? -1, dark));
  const slotOfCluster = new Map<number, number>();
  labels.forEach((label, i) => slotOfCluster.set(label, slots[i]!));
  const grouped = sizes.flatMap((size, cluster) =>
    size > 1 ? [{ colour: slotColour(slotOfCluster.get(cluster) ?? -1, dark), size }] : [],
  );
  return {
    colours,
    legend: {
      kind: "cluster",
      entries: grouped.slice(0, LEGEND_ENTRIES),
      more: Math.max(0, grouped.length - LEGEND_ENTRIES),
      lone: sizes.filter((size) => size === 1).length,
    },
  };
}

function slotColour(slot: number, dark: boolean): Colour {
  return slot < 0 ? loneColour(dark) : categorical(slot, dark);
}

function byToken(count: number): Coloured {
  return { colours: paint(count, (i) => viridis(count > 1 ? i / (count - 1) : 0)), legend: { kind: "token", count } };
}

function byAttention({ count, selected, attention, dark }: ColouringInputs): Coloured {
  const plain = () => paint(count, () => loneColour(dark));
  if (typeof attention === "string") return { colours: plain(), legend: { kind: "hint", text: `no attention to show: ${attention}` } };
  if (selected === null || selected >= count) {
    return { colours: plain(), legend: { kind: "hint", text: "choose a token to see what it attends to" } };
  }
  const row = attention(selected);
  const most = row.reduce((a, b) => Math.max(a, b), 0);
  const colours = paint(count, (i) => cividis(most > 0 ? row[i]! / most : 0));
  return { colours, legend: { kind: "attention", most, token: selected } };
}

function paint(count: number, colourOf: (index: number) => Colour): Float32Array {
  const colours = new Float32Array(count * 3);
  for (let i = 0; i < count; i += 1) colours.set(colourOf(i), 3 * i);
  return colours;
}
