// What lies over the tokens: rings around the chosen and the pointed-at token, and labels.
import { placeLabels, type Placed, tokenName, type Wish } from "./labels.ts";
import { toCss } from "./palette.ts";
import { FONT, type Theme } from "./theme.ts";
import { DISTANCE, type Projected, type Viewpoint } from "./viewpoint.ts";

type Pen = CanvasRenderingContext2D;

export interface OverlayInputs {
  world: Float32Array;
  count: number;
  radius: number;
  clusterOf: Int32Array;
  sizes: readonly number[];
  texts: readonly string[] | null;
  selected: number | null;
  hovered: number | null;
}

const ALL_TEXTS_BELOW = 80;
const COUNTS_FOR_CLUSTERS = 24;
const TEXT = `12px ${FONT}`;

export function drawOverlay(pen: Pen, view: Viewpoint, theme: Theme, inputs: OverlayInputs): void {
  const seen = (index: number) => project(view, inputs.world, index);
  const { selected, hovered } = inputs;
  if (hovered !== null && hovered < inputs.count) ring(pen, seen(hovered), inputs.radius, toCss(theme.ink, 0.55), 1.5);
  if (selected !== null && selected < inputs.count) ring(pen, seen(selected), inputs.radius, toCss(theme.ink), 2.2);
  pen.font = TEXT;
  const wishes = [...pointedAt(view, inputs), ...writtenTexts(view, inputs), ...clusterCounts(view, inputs)];
  for (const label of placeLabels(wishes, (text) => pen.measureText(text).width, view)) write(pen, theme, label);
}

function project(view: Viewpoint, world: Float32Array, index: number): Projected {
  return view.project(world[3 * index]!, world[3 * index + 1]!, world[3 * index + 2]!);
}

/** Towards the eye, or in a scene without a far side. */
export function isInFront(view: Viewpoint, world: Float32Array, index: number): boolean {
  if (view.stage !== "sphere") return true;
  const eye = view.camera.position;
  return eye.x * world[3 * index]! + eye.y * world[3 * index + 1]! + eye.z * world[3 * index + 2]! > 0;
}

function ring(pen: Pen, at: Projected, radius: number, style: string, width: number): void {
  pen.strokeStyle = style;
  pen.lineWidth = width;
  pen.beginPath();
  pen.arc(at.x, at.y, radius * (DISTANCE / at.depth) ** 0.6 + 4, 0, 2 * Math.PI);
  pen.stroke();
}

function wish(view: Viewpoint, inputs: OverlayInputs, index: number, text: string, rank: number): Wish {
  const { x, y } = project(view, inputs.world, index);
  return { text, x, y, gap: inputs.radius + 7, rank };
}

function pointedAt(view: Viewpoint, inputs: OverlayInputs): Wish[] {
  const { selected, hovered, texts, clusterOf, sizes, count } = inputs;
  const wishes: Wish[] = [];
  if (hovered !== null && hovered < count) {
    const size = sizes[clusterOf[hovered] ?? -1] ?? 1;
    const company = size > 1 ? `in a cluster of ${size}` : "alone";
    wishes.push(wish(view, inputs, hovered, `${tokenName(hovered, texts)}, ${company}`, 0));
  }
  if (selected !== null && selected < count && selected !== hovered) {
    wishes.push(wish(view, inputs, selected, tokenName(selected, texts), 0));
  }
  return wishes;
}

/** Texts of a trace: all when there are few, else one for each cluster. */
function writtenTexts(view: Viewpoint, inputs: OverlayInputs): Wish[] {
  const { texts, count, clusterOf, sizes } = inputs;
  if (texts === null) return [];
  const shown = (i: number) => i !== inputs.selected && i !== inputs.hovered && isInFront(view, inputs.world, i);
  if (count <= ALL_TEXTS_BELOW) {
    const all = Array.from({ length: count }, (_, i) => i).filter(shown);
    return all.map((i) => wish(view, inputs, i, tokenName(i, texts), 2));
  }
  return firstOfEach(clusterOf, sizes, 2 * COUNTS_FOR_CLUSTERS)
    .filter(shown)
    .map((i) => wish(view, inputs, i, tokenName(i, texts), 2));
}

/** Tokens on one spot look like one: their number is written beside them. */
function clusterCounts(view: Viewpoint, inputs: OverlayInputs): Wish[] {
  const { clusterOf, sizes, texts, world, radius } = inputs;
  if (texts !== null) return [];
  const representatives = firstOfEach(clusterOf, sizes, COUNTS_FOR_CLUSTERS).filter((i) => sizes[clusterOf[i]!]! > 2);
  const spread = new Map(representatives.map((i) => [clusterOf[i]!, { at: project(view, world, i), most: 0 }]));
  for (let i = 0; i < inputs.count; i += 1) {
    const cluster = spread.get(clusterOf[i]!);
    if (cluster === undefined) continue;
    const { x, y } = project(view, world, i);
    cluster.most = Math.max(cluster.most, Math.hypot(x - cluster.at.x, y - cluster.at.y));
  }
  return representatives
    .filter((i) => spread.get(clusterOf[i]!)!.most < 3 * radius && isInFront(view, world, i))
    .map((i) => ({
      ...wish(view, inputs, i, `×${sizes[clusterOf[i]!]}`, 3),
      ...inward(view, world, i, radius),
    }));
}

/** On the circle the counts stand inside, the density outside. */
function inward(view: Viewpoint, world: Float32Array, index: number, radius: number): Partial<Wish> {
  if (view.stage !== "circle") return {};
  const [token, centre] = [project(view, world, index), view.project(0, 0, 0)];
  const away = Math.hypot(centre.x - token.x, centre.y - token.y) || 1;
  const share = (radius + 18) / away;
  const halfText = 10;
  return { x: token.x + share * (centre.x - token.x) - halfText, y: token.y + share * (centre.y - token.y), gap: 0 };
}

function firstOfEach(clusterOf: Int32Array, sizes: readonly number[], most: number): number[] {
  const wanted = Math.min(most, sizes.length);
  const first = new Map<number, number>();
  for (let i = 0; i < clusterOf.length && first.size < wanted; i += 1) {
    const cluster = clusterOf[i]!;
    if (cluster < wanted && !first.has(cluster)) first.set(cluster, i);
  }
  return [...first.values()];
}

/** Text with a halo of the background, legible over anything. */
function write(pen: Pen, theme: Theme, label: Placed): void {
  pen.font = label.rank === 0 ? `600 ${TEXT}` : TEXT;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 3.5;
  pen.strokeStyle = toCss(theme.background, 0.85);
  pen.strokeText(label.text, label.x, label.y);
  pen.fillStyle = toCss(theme.ink, label.rank > 2 ? 0.8 : 1);
  pen.fillText(label.text, label.x, label.y);
}

export function drawHull(pen: Pen, view: Viewpoint, theme: Theme, world: Float32Array, hull: number[]): void {
  if (hull.length < 2) return;
  pen.beginPath();
  hull.forEach((index, k) => {
    const { x, y } = project(view, world, index);
    if (k === 0) pen.moveTo(x, y);
    else pen.lineTo(x, y);
  });
  pen.closePath();
  pen.fillStyle = toCss(theme.accent, 0.08);
  pen.fill();
  pen.strokeStyle = toCss(theme.accent, 0.7);
  pen.lineWidth = 1.3;
  pen.stroke();
}
