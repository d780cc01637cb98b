// The grid of a sweep: which cell is where.
import type { SweepReplay } from "../replay/types.ts";

export interface Field {
  rows: number;
  columns: number;
  values: ArrayLike<number>; // rows * columns; NaN where nothing was measured
  least: number;
  most: number;
}

export interface Cell {
  row: number;
  column: number;
}

/** Room for the axes, in CSS pixels. */
export const PLOT = { left: 62, right: 10, top: 6, bottom: 36 };

export function fieldOf(sweep: SweepReplay, values: ArrayLike<number>): Field {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < values.length; i += 1) {
    if (!Number.isFinite(values[i])) continue;
    least = Math.min(least, values[i]!);
    most = Math.max(most, values[i]!);
  }
  return { rows: sweep.rows.values.length, columns: sweep.columns.values.length, values, least, most };
}

/** The cell under a pixel of the canvas; rows grow upwards. */
export function cellUnder(x: number, y: number, width: number, height: number, field: Field): Cell | null {
  const column = Math.floor(((x - PLOT.left) / (width - PLOT.left - PLOT.right)) * field.columns);
  const fromTop = Math.floor(((y - PLOT.top) / (height - PLOT.top - PLOT.bottom)) * field.rows);
  const row = field.rows - 1 - fromTop;
  return column >= 0 && column < field.columns && row >= 0 && row < field.rows ? { row, column } : null;
}

const STEPS: Record<string, [number, number]> = {
  ArrowUp: [1, 0],
  ArrowDown: [-1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** The cell an arrow key leads to, staying on the grid; null for other keys. */
export function moveCell({ row, column }: Cell, key: string, field: Field): Cell | null {
  const step = STEPS[key];
  if (step === undefined) return null;
  return {
    row: Math.min(field.rows - 1, Math.max(0, row + step[0])),
    column: Math.min(field.columns - 1, Math.max(0, column + step[1])),
  };
}

/** Which of `count` entries get a label when there is room for `room` of them: the ends and evenly between. */
export function labelledTicks(count: number, room: number): number[] {
  const shown = Math.max(1, Math.min(count, Math.floor(room)));
  if (shown === 1) return [0];
  const places = Array.from({ length: shown }, (_, i) => Math.round((i * (count - 1)) / (shown - 1)));
  return [...new Set(places)];
}
