// Clusters: connected components of tokens closer than a stated distance (tokenflock/observables/components.py),
// by a grid instead of all pairs.
import type { SpaceName } from "../spec/size.ts";

/** Tokens are never linked beyond this angle (sphere), and always below this distance in R^d. */
const WIDEST_LINK = 0.1;

/**
 * Tokens closer than this are linked. On a sphere the rule "spacing" of tokenflock/theory/spacing.py: a uniform
 * token has half a neighbour within it, so that n uniform tokens make at least 3n/4 clusters.
 */
export function linkAngle(n: number, d: number, space: SpaceName): number {
  if (space !== "sphere" || n < 2) return WIDEST_LINK;
  const mass = 0.5 / (n - 1);
  return Math.min(WIDEST_LINK, d === 2 ? Math.PI * mass : 2 * Math.asin(Math.sqrt(mass)));
}

export interface Clusters {
  labels: Int32Array; // 0 = largest
  sizes: number[];
}

/** The clusters at `linkAngle`, largest first, ties by their first token. */
export function clustersOf(points: Float64Array, d: number, space: SpaceName): Clusters {
  const link = linkAngle(points.length / d, d, space);
  const reach = space === "sphere" ? 2 * Math.sin(link / 2) : link;
  const forest = new Forest(points.length / d);
  linkNear(points, d, reach, forest);
  return ranked(forest);
}

/**
 * Cells are so small that all tokens of one are linked; then only cells whose tokens are not linked yet are
 * compared, token by token until a near pair is found.
 */
function linkNear(points: Float64Array, d: number, reach: number, forest: Forest): void {
  const grid = new Grid(points, d, (reach / Math.sqrt(d)) * (1 - 1e-9));
  for (let i = 0; i < forest.size; i++) if (grid.next[i] !== NOBODY) forest.join(i, grid.next[i]!);
  const offsets = halfNeighbourhood(d);
  for (let cell = 0; cell < grid.count; cell++) {
    const first = grid.first[cell]!;
    for (const [a, b, c] of offsets) {
      const other = grid.neighbour(cell, a!, b!, c!);
      if (other === NOBODY || forest.joined(first, grid.first[other]!)) continue;
      if (grid.anyNear(cell, other, reach * reach)) forest.join(first, grid.first[other]!);
    }
  }
}

const NOBODY = -1;

/** Tokens by cell: a hash table of cells (open addressing), each with a chain of its tokens. */
class Grid {
  count = 0;
  readonly first: Int32Array; // of a cell: its last token met, the head of its chain
  readonly next: Int32Array; // of a token: another of its cell
  private readonly places: Int32Array; // of a cell: three whole coordinates
  private readonly table: Int32Array;
  private readonly points: Float64Array;
  private readonly d: number;

  constructor(points: Float64Array, d: number, side: number) {
    const n = points.length / d;
    this.points = points;
    this.d = d;
    this.first = new Int32Array(n);
    this.next = new Int32Array(n).fill(NOBODY);
    this.places = new Int32Array(3 * n);
    this.table = new Int32Array(2 ** Math.ceil(Math.log2(4 * n))).fill(NOBODY);
    for (let i = 0; i < n; i++) {
      const at = (k: number) => (k < d ? Math.floor(points[i * d + k]! / side) : 0);
      this.add(i, at(0), at(1), at(2));
    }
  }

  /** The cell at an offset from another, or NOBODY. */
  neighbour(cell: number, a: number, b: number, c: number): number {
    const k = 3 * cell;
    const slot = this.slot(this.places[k]! + a, this.places[k + 1]! + b, this.places[k + 2]! + c);
    return this.table[slot]!;
  }

  /** Whether two cells hold tokens within reach of each other. */
  anyNear(cell: number, other: number, squaredReach: number): boolean {
    const { points, d } = this;
    for (let i = this.first[cell]!; i !== NOBODY; i = this.next[i]!) {
      for (let j = this.first[other]!; j !== NOBODY; j = this.next[j]!) {
        let squared = 0;
        for (let k = 0; k < d; k++) squared += (points[i * d + k]! - points[j * d + k]!) ** 2;
        if (squared <= squaredReach) return true;
      }
    }
    return false;
  }

  private add(token: number, a: number, b: number, c: number): void {
    const slot = this.slot(a, b, c);
    if (this.table[slot] === NOBODY) {
      this.places.set([a, b, c], 3 * this.count);
      this.first[this.count] = NOBODY;
      this.table[slot] = this.count++;
    }
    const cell = this.table[slot]!;
    this.next[token] = this.first[cell]!;
    this.first[cell] = token;
  }

  /** Where the cell of a place is in the table, or the free slot where it belongs. */
  private slot(a: number, b: number, c: number): number {
    const { table, places } = this;
    const mask = table.length - 1;
    const mixed = Math.imul(a, 73856093) ^ Math.imul(b, 19349663) ^ Math.imul(c, 83492791);
    let slot = (mixed ^ (mixed >>> 15)) & mask;
    while (table[slot] !== NOBODY) {
      const k = 3 * table[slot]!;
      if (places[k] === a && places[k + 1] === b && places[k + 2] === c) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }
}

/** Offsets of the cells that hold points within reach, one of each opposite pair; cells are reach/sqrt(d) wide. */
function halfNeighbourhood(d: number): number[][] {
  const shifts = [-2, -1, 0, 1, 2];
  const third = d === 3 ? shifts : [0];
  const all = shifts.flatMap((a) => shifts.flatMap((b) => third.map((c) => [a, b, c])));
  return all.filter((offset) => {
    const gap = offset.reduce((sum, s) => sum + Math.max(Math.abs(s) - 1, 0) ** 2, 0);
    return (offset.find((s) => s !== 0) ?? 0) > 0 && gap <= d;
  });
}

/** Disjoint sets; the root of a set is its first token. */
class Forest {
  private readonly parent: Int32Array;

  constructor(n: number) {
    this.parent = Int32Array.from({ length: n }, (_, i) => i);
  }

  get size(): number {
    return this.parent.length;
  }

  root(i: number): number {
    const parent = this.parent;
    while (parent[i] !== i) {
      parent[i] = parent[parent[i]!]!;
      i = parent[i]!;
    }
    return i;
  }

  joined(i: number, j: number): boolean {
    return this.root(i) === this.root(j);
  }

  join(i: number, j: number): void {
    const [a, b] = [this.root(i), this.root(j)];
    this.parent[Math.max(a, b)] = Math.min(a, b);
  }
}

function ranked(forest: Forest): Clusters {
  return rank(Int32Array.from({ length: forest.size }, (_, i) => forest.root(i)));
}

/** Clusters that are known already, by any numbers, in the same order. */
export function rankClusters(ids: ArrayLike<number>): Clusters {
  const firsts = new Map<number, number>();
  return rank(
    Int32Array.from(ids, (id, i) => {
      if (!firsts.has(id)) firsts.set(id, i);
      return firsts.get(id)!;
    }),
  );
}

/** Tokens of a cluster name the same one of them. */
function rank(roots: Int32Array): Clusters {
  const counts = new Int32Array(roots.length);
  for (const root of roots) counts[root]! += 1;
  const found: number[] = [];
  counts.forEach((count, root) => count > 0 && found.push(root));
  found.sort((a, b) => counts[b]! - counts[a]! || a - b);
  const order = new Int32Array(roots.length);
  found.forEach((root, index) => (order[root] = index));
  return { labels: roots.map((root) => order[root]!), sizes: found.map((root) => counts[root]!) };
}
