// A sweep as a map: one cell per setting. Click it, or press Enter on it, to watch that setting.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { cellText } from "../app/adopt.ts";
import type { Store } from "../app/contract.ts";
import { unpack } from "../replay/unpack.ts";
import type { SweepAxis, SweepReplay } from "../replay/types.ts";
import { tickText } from "../scene/geometry.ts";
import { cividis, gradient } from "../scene/palette.ts";
import { asImage, preparePen } from "./canvas.ts";
import styles from "./charts.css?inline";
import { lookOf } from "./look.ts";
import { type Cell, cellUnder, type Field, fieldOf, labelledTicks, moveCell, PLOT } from "./sweepGrid.ts";

const LONGEST_TICK = 9; // letters

export function SweepMap({ store }: { store: Store }) {
  const sweep = store.sweep.value;
  return sweep === null || sweep.statistics.length === 0 ? null : <Map key={sweep.title} store={store} sweep={sweep} />;
}

function Map({ store, sweep }: { store: Store; sweep: SweepReplay }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const chosen = useSignal(0);
  const cell = useSignal<Cell>({ row: 0, column: 0 });
  const field = useMemo(() => fieldOf(sweep, unpack(sweep.statistics[chosen.value]!.values)), [sweep, chosen.value]);
  const draw = (): void => canvas.current === null ? undefined : drawMap(canvas.current, sweep, field, cell.value, store.dark.value);
  useEffect(draw);
  useEffect(() => {
    if (canvas.current === null) return; // taken away before it was shown
    const watcher = new ResizeObserver(() => draw());
    watcher.observe(canvas.current.parentElement!);
    return () => watcher.disconnect();
  }, [sweep, field]);

  const point = (event: PointerEvent): Cell | null => {
    const box = canvas.current!.getBoundingClientRect();
    return cellUnder(event.clientX - box.left, event.clientY - box.top, box.width, box.height, field);
  };
  const watch = ({ row, column }: Cell): void => {
    if (sweep.spec !== null) store.watchCell(row, column);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter" || event.key === " ") watch(cell.value);
    else if (moveCell(cell.value, event.key, field) === null) return;
    else cell.value = moveCell(cell.value, event.key, field)!;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section class="tfc" data-dark={store.dark.value} aria-label="Sweep">
      <style>{styles}</style>
      <figure class="tfc-card tfc-sweep">
        <figcaption>
          {sweep.title}
          <label>
            show{" "}
            <select value={chosen.value} onChange={(event) => (chosen.value = Number(event.currentTarget.value))}>
              {sweep.statistics.map(({ name }, i) => (
                <option key={name} value={i}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </figcaption>
        <div class="tfc-plot">
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            aria-label={`Map of ${sweep.statistics[chosen.value]!.name} over ${sweep.columns.name} and ${sweep.rows.name}; arrow keys move, Enter watches`}
            aria-describedby={`cell-${sweep.title}`}
            data-testid="sweep-map"
            onPointerMove={(event) => (cell.value = point(event) ?? cell.value)}
            onClick={(event) => {
              const at = point(event as unknown as PointerEvent);
              if (at !== null) watch((cell.value = at));
            }}
            onKeyDown={press}
          />
        </div>
        <p class="tfc-scale">
          {numberText(field.least)}
          <i style={{ background: gradient(cividis) }} />
          {numberText(field.most)}
        </p>
        <p class="tfc-note" id={`cell-${sweep.title}`} aria-live="polite" data-testid="sweep-cell">
          {cellWords(sweep, chosen.value, field, cell.value)}
        </p>
        {sweep.notes !== undefined && sweep.notes.length > 0 && <p class="tfc-note">{sweep.notes.join("; ")}</p>}
      </figure>
    </section>
  );
}

function cellWords(sweep: SweepReplay, chosen: number, field: Field, { row, column }: Cell): string {
  const setting = [cellText(sweep.columns, column), cellText(sweep.rows, row)];
  const value = numberText(field.values[row * field.columns + column]);
  const hint = sweep.spec === null ? "" : "; click or press Enter to watch it";
  return `${setting.join(", ")}: ${sweep.statistics[chosen]!.name} ${value}${hint}`;
}

/** Rows grow upwards, as the axis of a chart does. */
function drawMap(canvas: HTMLCanvasElement, sweep: SweepReplay, field: Field, at: Cell, dark: boolean): void {
  const width = canvas.parentElement?.clientWidth ?? 0;
  if (width === 0) return;
  const height = Math.max(200, Math.min(380, 0.75 * width));
  canvas.style.height = `${height}px`;
  const pen = preparePen(canvas, width, height);
  if (pen === null) return;
  const look = lookOf(dark);
  const box = { wide: width - PLOT.left - PLOT.right, high: height - PLOT.top - PLOT.bottom };
  const span = field.most - field.least;
  const image = asImage(field.rows, field.columns, (i) => {
    const value = field.values[(field.rows - 1 - Math.floor(i / field.columns)) * field.columns + (i % field.columns)]!;
    return Number.isFinite(value) ? cividis(span > 0 ? (value - field.least) / span : 0.5) : null;
  });
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, PLOT.left, PLOT.top, box.wide, box.high);
  const cell = { wide: box.wide / field.columns, high: box.high / field.rows };
  const middle = (row: number) => PLOT.top + (field.rows - 0.5 - row) * cell.high;
  pen.strokeStyle = look.text;
  pen.strokeRect(PLOT.left, PLOT.top, box.wide, box.high);
  pen.fillStyle = look.text;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  for (const i of labelledTicks(field.columns, box.wide / 44)) {
    pen.fillText(tickAt(sweep.columns, i), PLOT.left + (i + 0.5) * cell.wide, height - PLOT.bottom + 14);
  }
  pen.fillText(`${sweep.columns.name} →`, PLOT.left + box.wide / 2, height - 6);
  pen.textAlign = "right";
  for (const i of labelledTicks(field.rows, box.high / 22)) {
    pen.fillText(tickAt(sweep.rows, i), PLOT.left - 6, middle(i) + 4);
  }
  markCell(pen, PLOT.left + at.column * cell.wide, middle(at.row) - cell.high / 2, cell.wide, cell.high);
  pen.translate(11, PLOT.top + box.high / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(`${sweep.rows.name} →`, 0, 0);
}

/** A white line inside a black one is seen on every colour. */
function markCell(pen: CanvasRenderingContext2D, x: number, y: number, wide: number, high: number): void {
  for (const [style, lineWidth] of [["#000", 4], ["#fff", 2]] as const) {
    pen.strokeStyle = style;
    pen.lineWidth = lineWidth;
    pen.strokeRect(x, y, wide, high);
  }
}

/** The label of a position as far as there is room for it; the line below the map has all of it. */
function tickAt({ values, labels, sets }: SweepAxis, position: number): string {
  const label = labels?.[position];
  if (label === undefined) return numberText(values[position]);
  if (Object.keys(sets ?? {}).length > 1) return String(position);
  return label.length > LONGEST_TICK ? `${label.slice(0, LONGEST_TICK - 1)}…` : label;
}

function numberText(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? "not known" : tickText(value);
}
