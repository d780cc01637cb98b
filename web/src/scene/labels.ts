// Which labels are written, and where, so that they do not cover each other.

export interface Wish {
  text: string;
  x: number; // of the token, CSS pixels
  y: number;
  gap: number; // how far the text keeps from the token
  rank: number; // lower is more important; 0 is always written
}

export interface Placed {
  text: string;
  x: number; // left end of the text
  y: number; // its middle
  rank: number;
}

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const HEIGHT = 15;

/** Tries right, left, above, below of the token; leaves a label out when all four are taken. */
export function placeLabels(
  wishes: Wish[],
  widthOf: (text: string) => number,
  view: { width: number; height: number },
): Placed[] {
  const taken: Box[] = [];
  const placed: Placed[] = [];
  for (const wish of [...wishes].sort((a, b) => a.rank - b.rank)) {
    const boxes = candidates(wish, widthOf(wish.text));
    const free = boxes.find((box) => inside(box, view) && !taken.some((other) => overlap(box, other)));
    const box = free ?? (wish.rank === 0 ? boxes[0] : undefined);
    if (box === undefined) continue;
    taken.push(box);
    placed.push({ text: wish.text, x: box.left, y: (box.top + box.bottom) / 2, rank: wish.rank });
  }
  return placed;
}

function candidates({ x, y, gap }: Wish, width: number): Box[] {
  const box = (left: number, middle: number): Box => ({
    left,
    top: middle - HEIGHT / 2,
    right: left + width,
    bottom: middle + HEIGHT / 2,
  });
  const reach = gap + HEIGHT / 2;
  return [box(x + gap, y), box(x - gap - width, y), box(x - width / 2, y - reach), box(x - width / 2, y + reach)];
}

function inside(box: Box, view: { width: number; height: number }): boolean {
  return box.left >= 2 && box.top >= 2 && box.right <= view.width - 2 && box.bottom <= view.height - 2;
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right + 3 && b.left < a.right + 3 && a.top < b.bottom && b.top < a.bottom;
}

/** The text of a token: its own (a trace), else its number, counted from 1 as in the papers. */
export function tokenName(index: number, labels: readonly string[] | null): string {
  const text = labels?.[index] ?? "";
  const seen = text.trim() === "" ? text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥") : text.trim();
  return seen === "" ? `token ${index + 1}` : seen;
}
