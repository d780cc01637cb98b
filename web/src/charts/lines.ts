// Lines over time: bringing several on one axis, thinning them, finding a time.

export interface Line {
  times: ArrayLike<number>;
  values: ArrayLike<number | null>;
}

/** Index of the entry of an ascending list that is closest to `wanted`; -1 when the list is empty. */
export function nearestIndex(times: ArrayLike<number>, wanted: number): number {
  if (times.length === 0) return -1;
  let [low, high] = [0, times.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= wanted) low = middle;
    else high = middle;
  }
  return Math.abs(times[low]! - wanted) <= Math.abs(times[high]! - wanted) ? low : high;
}

/** What was measured, without gaps, at most `most` points; extremes between kept points are kept too. */
export function thin(line: Line, most: number): { times: number[]; values: number[] } {
  const times: number[] = [];
  const values: number[] = [];
  for (let i = 0; i < line.times.length; i += 1) {
    const value = line.values[i];
    if (value === null || value === undefined || !Number.isFinite(value)) continue;
    times.push(line.times[i]!);
    values.push(value);
  }
  if (times.length <= most) return { times, values };
  const kept = keepExtremes(values, Math.max(1, Math.floor(most / 2)));
  return { times: kept.map((i) => times[i]!), values: kept.map((i) => values[i]!) };
}

/** Smallest and largest of every bucket, in their order, and the two ends. */
function keepExtremes(values: number[], buckets: number): number[] {
  const kept = new Set<number>([0, values.length - 1]);
  for (let b = 0; b < buckets; b += 1) {
    const from = Math.floor((b * values.length) / buckets);
    const to = Math.floor(((b + 1) * values.length) / buckets);
    let [least, most] = [from, from];
    for (let i = from; i < to; i += 1) {
      if (values[i]! < values[least]!) least = i;
      if (values[i]! > values[most]!) most = i;
    }
    kept.add(least).add(most);
  }
  return [...kept].sort((a, b) => a - b);
}

/** All times of all lines, ascending, and every line's values there; null where a line has no point. */
export function align(lines: Line[]): { times: number[]; columns: (number | null)[][] } {
  const times = [...new Set(lines.flatMap((line) => Array.from(line.times)))].sort((a, b) => a - b);
  const place = new Map(times.map((time, i) => [time, i]));
  const columns = lines.map((line) => {
    const column = new Array<number | null>(times.length).fill(null);
    for (let i = 0; i < line.times.length; i += 1) column[place.get(line.times[i]!)!] = line.values[i] ?? null;
    return column;
  });
  return { times, columns };
}

/** Times to evaluate a formula at: evenly on the axis that is shown. */
export function grid(from: number, to: number, count: number, log: boolean): number[] {
  if (!(to > from) || (log && !(from > 0))) return [];
  return Array.from({ length: count }, (_, i) => {
    const share = i / (count - 1);
    return log ? from * (to / from) ** share : from + (to - from) * share;
  });
}

export function valueText(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : value.toPrecision(4);
}
