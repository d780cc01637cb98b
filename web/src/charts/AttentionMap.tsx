// Who attends to whom: row i is what token i reads from every token j.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Store } from "../app/contract.ts";
import { attentionMatrix } from "../observe/index.ts";
import type { Spec } from "../spec/types.ts";
import { tokenName } from "../scene/labels.ts";
import { cividis, gradient } from "../scene/palette.ts";
import { asImage, preparePen } from "./canvas.ts";
import { valueText } from "./lines.ts";
import { lookOf } from "./look.ts";
import { pacedDrawing } from "./paced.ts";

const MOST_TOKENS = 128;
const DECADES = 6; // the logarithmic scale ends this far below the largest weight
const MARGIN = 22;
const MOST_SIDE = 260;

interface Shown {
  tokens: number[]; // behind the rows and columns, in the order they are drawn
  values: Float32Array; // tokens.length squared
  most: number;
  causal: boolean;
}

export function AttentionMap({ store }: { store: Store }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const log = useSignal(false);
  const grouped = useSignal(false);
  const shown = useSignal<Shown | null>(null);
  const pointed = useSignal<{ row: number; column: number } | null>(null);
  useEffect(() => {
    const target = canvas.current;
    if (target === null) return; // taken away before it was shown
    const draw = (): void => {
      if ((target.parentElement?.clientWidth ?? 0) === 0) return;
      const known = store.known.peek();
      if (typeof known === "string") return; // about to be taken away
      const next = lookAt(store, known, grouped.peek());
      drawMatrix(target, next, log.peek(), store.dark.peek());
      shown.value = next;
    };
    const read = () => [store.frame.value, store.known.value, store.dark.value, log.value, grouped.value];
    return pacedDrawing(target, read, draw);
  }, [store]);
  return (
    <figure class="tfc-card">
      <figcaption>
        Attention: token i attends to token j
        <span class="tfc-choices">
          <Choice on={grouped} text="by cluster" />
          <Choice on={log} text="log" />
        </span>
      </figcaption>
      <div class="tfc-plot tfc-matrix">
        <canvas
          ref={canvas}
          onPointerMove={(event) => (pointed.value = cellAt(event, shown.value?.tokens.length ?? 0))}
          onPointerLeave={() => (pointed.value = null)}
          role="img"
          aria-label={summary(store, shown.value)}
        />
      </div>
      <Scale shown={shown.value} log={log} />
      <p class="tfc-note">{cellText(store, shown.value, pointed.value)}</p>
    </figure>
  );
}

function Choice({ on, text }: { on: Signal<boolean>; text: string }) {
  return (
    <label>
      <input type="checkbox" checked={on.value} onChange={(event) => (on.value = event.currentTarget.checked)} /> {text}
    </label>
  );
}

/** The attention of the shown frame; rows and columns as they come, or cluster after cluster. */
function lookAt(store: Store, spec: Spec, grouped: boolean): Shown {
  const { size, values } = attentionMatrix(spec, store.frame.peek(), MOST_TOKENS);
  const count = store.n.peek();
  const { labels } = store.measured.peek();
  // Above MOST_TOKENS they are thinned evenly, as `attentionMatrix` does.
  const tokenAt = (place: number) => Math.floor((place * count) / size);
  const places = Array.from({ length: size }, (_, place) => place);
  if (grouped) places.sort((a, b) => (labels[tokenAt(a)] ?? 0) - (labels[tokenAt(b)] ?? 0) || a - b);
  const ordered = Float32Array.from(values, (_, i) => values[places[Math.floor(i / size)]! * size + places[i % size]!]!);
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  return { tokens: places.map(tokenAt), values: ordered, most, causal: spec.model.name === "CausalSA" };
}

function side(canvas: HTMLCanvasElement): number {
  return Math.min(MOST_SIDE, (canvas.parentElement?.clientWidth ?? 0) - 4);
}

function drawMatrix(canvas: HTMLCanvasElement, shown: Shown, log: boolean, dark: boolean): void {
  const { tokens, values, most } = shown;
  const size = tokens.length;
  const whole = side(canvas);
  canvas.style.width = canvas.style.height = `${whole}px`;
  const pen = preparePen(canvas, whole, whole);
  if (pen === null || size === 0) return;
  const share = (value: number) => (most === 0 ? 0 : log ? 1 + Math.log10(Math.max(value / most, 1e-300)) / DECADES : value / most);
  // Where the mask forbids to look, the map stays empty.
  const masked = (i: number) => shown.causal && tokens[i % size]! > tokens[Math.floor(i / size)]!;
  const image = asImage(size, size, (i) => (masked(i) ? null : cividis(share(values[i]!))));
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, MARGIN, 0, whole - MARGIN, whole - MARGIN);
  const look = lookOf(dark);
  pen.strokeStyle = look.grid;
  pen.strokeRect(MARGIN + 0.5, 0.5, whole - MARGIN - 1, whole - MARGIN - 1);
  pen.fillStyle = look.text;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText("token j →", MARGIN + (whole - MARGIN) / 2, whole - 7);
  pen.translate(12, (whole - MARGIN) / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText("← token i", 0, 0);
}

function cellAt(event: PointerEvent, size: number): { row: number; column: number } | null {
  const canvas = event.currentTarget as HTMLCanvasElement;
  const box = canvas.getBoundingClientRect();
  const cell = (box.width - MARGIN) / Math.max(1, size);
  const row = Math.floor((event.clientY - box.top) / cell);
  const column = Math.floor((event.clientX - box.left - MARGIN) / cell);
  return row >= 0 && row < size && column >= 0 && column < size ? { row, column } : null;
}

function cellText(store: Store, shown: Shown | null, at: { row: number; column: number } | null): string {
  if (shown === null) return "";
  const { tokens, values } = shown;
  const count = store.n.value;
  const thinned = tokens.length < count ? `${tokens.length} of ${count} tokens shown` : `all ${count} tokens`;
  if (at === null || at.row >= tokens.length || at.column >= tokens.length) return `${thinned}; point at a cell to read it`;
  const name = (place: number) => tokenName(tokens[place]!, store.labels.value);
  return `${name(at.row)} attends to ${name(at.column)}: ${valueText(values[at.row * tokens.length + at.column])}`;
}

function summary(store: Store, shown: Shown | null): string {
  const most = shown === null ? "" : `, the largest weight is ${valueText(shown.most)}`;
  return `Attention matrix of ${store.n.value} tokens${most}`;
}

function Scale({ shown, log }: { shown: Shown | null; log: Signal<boolean> }) {
  if (shown === null) return null;
  return (
    <p class="tfc-scale">
      {log.value ? valueText(shown.most * 10 ** -DECADES) : "0"}
      <i style={{ background: gradient(cividis) }} />
      {valueText(shown.most)}
    </p>
  );
}
