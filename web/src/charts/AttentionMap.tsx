// Who attends to whom: row i is what token i reads from every token j.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Store } from "../app/contract.ts";
import { attentionMatrix } from "../observe/index.ts";
import { tokenName } from "../scene/labels.ts";
import { cividis, gradient } from "../scene/palette.ts";
import { asImage, preparePen } from "./canvas.ts";
import { valueText } from "./lines.ts";
import { lookOf } from "./look.ts";
import { paced } from "./paced.ts";

const MOST_TOKENS = 128;
const DECADES = 6; // the logarithmic scale ends this far below the largest weight
const MARGIN = 22;
const MOST_SIDE = 260;

interface Shown {
  size: number;
  values: Float32Array;
  most: number;
}

export function AttentionMap({ store }: { store: Store }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const log = useSignal(false);
  const shown = useSignal<Shown | null>(null);
  const pointed = useSignal<{ row: number; column: number } | null>(null);
  useEffect(() => {
    const draw = (): void => {
      if ((canvas.current?.parentElement?.clientWidth ?? 0) === 0) return;
      const matrix = attentionMatrix(store.spec.peek(), store.frame.peek(), MOST_TOKENS);
      const next = { ...matrix, most: matrix.values.reduce((a, b) => Math.max(a, b), 0) };
      drawMatrix(canvas.current!, next, log.peek(), store.dark.peek());
      shown.value = next;
    };
    const stop = paced(() => [store.frame.value, store.spec.value, store.dark.value, log.value], draw);
    const watcher = new ResizeObserver(draw);
    watcher.observe(canvas.current!.parentElement!);
    return () => {
      stop();
      watcher.disconnect();
    };
  }, [store]);
  const point = (event: PointerEvent): void => {
    pointed.value = cellAt(event, shown.value?.size ?? 0);
  };
  return (
    <figure class="tfc-card">
      <figcaption>
        Attention: token i attends to token j
        <label>
          <input type="checkbox" checked={log.value} onChange={(event) => (log.value = event.currentTarget.checked)} /> log
        </label>
      </figcaption>
      <div class="tfc-plot tfc-matrix">
        <canvas ref={canvas} onPointerMove={point} onPointerLeave={() => (pointed.value = null)} role="img" aria-label={summary(store, shown.value)} />
      </div>
      <Scale shown={shown.value} log={log} />
      <p class="tfc-note">{cellText(store, shown.value, pointed.value)}</p>
    </figure>
  );
}

function side(canvas: HTMLCanvasElement): number {
  return Math.min(MOST_SIDE, (canvas.parentElement?.clientWidth ?? 0) - 4);
}

function drawMatrix(canvas: HTMLCanvasElement, { size, values, most }: Shown, log: boolean, dark: boolean): void {
  const whole = side(canvas);
  canvas.style.width = canvas.style.height = `${whole}px`;
  const pen = preparePen(canvas, whole, whole);
  if (pen === null || size === 0) return;
  const share = (value: number) => (log ? 1 + Math.log10(Math.max(value / most, 1e-300)) / DECADES : value / most);
  // Exactly zero is "may not look" (a causal mask): it stays empty.
  const image = asImage(size, size, (i) => (values[i] === 0 ? null : cividis(share(values[i]!))));
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

/** Token behind a row or column: above MOST_TOKENS they are thinned evenly. */
function tokenAt(place: number, size: number, count: number): number {
  return size >= count ? place : Math.floor((place * count) / size);
}

function cellText(store: Store, shown: Shown | null, at: { row: number; column: number } | null): string {
  if (shown === null) return "";
  const count = store.n.value;
  const thinned = shown.size < count ? `${shown.size} of ${count} tokens shown` : `all ${count} tokens`;
  if (at === null || at.row >= shown.size || at.column >= shown.size) return `${thinned}; point at a cell to read it`;
  const name = (place: number) => tokenName(tokenAt(place, shown.size, count), store.labels.value);
  const weight = valueText(shown.values[at.row * shown.size + at.column]);
  return `${name(at.row)} attends to ${name(at.column)}: ${weight}`;
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
