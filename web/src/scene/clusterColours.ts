// Labels of clusters are ordered by size, so a label changes hands whenever two clusters swap ranks. A colour
// should not: a cluster keeps the colour most of its tokens had in the picture before.

const LONE = -1;
const CLEAR = 8; // slots below this differ in hue, those above only in shade

export class ClusterColours {
  private slots = new Int32Array(0);

  /** The colour slot of every token (-1: alone), given its cluster and the sizes of the clusters. */
  assign(labels: Int32Array, sizes: readonly number[]): Int32Array {
    const before = this.slots.length === labels.length ? this.slots : null;
    const slotOfCluster = inheritSlots(labels, sizes, before);
    this.slots = labels.map((label) => slotOfCluster[label] ?? LONE);
    return this.slots;
  }

  /** The slot of every cluster, largest first. */
  ofClusters(labels: Int32Array, clusters: number): number[] {
    if (this.slots.length !== labels.length) return [];
    return Array.from({ length: clusters }, (_, cluster) => this.slots[labels.indexOf(cluster)] ?? LONE);
  }

  /** Go on from slots that clusters had elsewhere. */
  adopt(labels: Int32Array, slotOfCluster: readonly number[]): void {
    this.slots = labels.map((label) => slotOfCluster[label] ?? LONE);
  }

  forget(): void {
    this.slots = new Int32Array(0);
  }
}

/**
 * Largest cluster first: the slot most of its tokens had, if nobody larger took it; else the first free one. A
 * shade is given up as soon as a hue is free.
 */
export function inheritSlots(labels: Int32Array, sizes: readonly number[], before: Int32Array | null): number[] {
  const votes = before === null ? [] : countVotes(labels, sizes.length, before);
  const taken = new Set<number>();
  const slots = sizes.map((size, cluster) => {
    if (size < 2) return LONE;
    const wished = favourite(votes[cluster], taken);
    if (wished !== null) taken.add(wished);
    return wished;
  });
  const firstFree = (): number => {
    let free = 0;
    while (taken.has(free)) free += 1;
    return free;
  };
  return slots.map((slot) => {
    if (slot !== null && slot < CLEAR) return slot;
    const free = firstFree();
    if (slot !== null && free >= CLEAR) return slot;
    if (slot !== null) taken.delete(slot);
    taken.add(free);
    return free;
  });
}

function countVotes(labels: Int32Array, clusters: number, before: Int32Array): Map<number, number>[] {
  const votes = Array.from({ length: clusters }, () => new Map<number, number>());
  labels.forEach((label, token) => {
    const slot = before[token]!;
    if (slot !== LONE) votes[label]?.set(slot, (votes[label].get(slot) ?? 0) + 1);
  });
  return votes;
}

function favourite(votes: Map<number, number> | undefined, taken: Set<number>): number | null {
  let best: number | null = null;
  let most = 0;
  for (const [slot, count] of votes ?? []) {
    if (!taken.has(slot) && (count > most || (count === most && best !== null && slot < best))) {
      best = slot;
      most = count;
    }
  }
  return best;
}
