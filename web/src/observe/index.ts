// What is read off a frame of tokens. At n = 1,000 everything together takes a few milliseconds.
import type { Frame, Measured } from "../app/contract.ts";
import { modelOf } from "../physics/model.ts";
import { dimension, type SpaceName, spaceOf } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { clustersOf } from "./clusters.ts";
import { energyOf } from "./energy.ts";
import { alignment } from "./pairs.ts";

export { CLUSTER_ANGLE } from "./clusters.ts";
export { circleDensity, DENSITY_BANDWIDTH } from "./density.ts";
export { attentionMatrix, attentionRow, cosineHistogram } from "./pairs.ts";

// Beyond this many tokens an energy over all pairs (d = 3, or a matrix B) takes longer than a frame.
const PAIRS_PER_FRAME = 1024;

/**
 * Energy, clusters, order and mean cosine. `withEnergy: false` leaves the energy out (null): callers that
 * measure every frame skip it now and then where `energyIsSlow` says so.
 */
export function measure(spec: Spec, frame: Frame, withEnergy = true): Measured {
  const energy = withEnergy ? energyOf(modelOf(spec), frame) : null;
  return { ...measureReplay(spaceOf(spec), dimension(spec), frame), energy };
}

/** Whether the energy of this spec costs more than a displayed frame: O(n^2) on the sphere, or with B. */
export function energyIsSlow(spec: Spec): boolean {
  const { n, d, weights } = modelOf(spec);
  return n > PAIRS_PER_FRAME && (d === 3 || weights.B !== null);
}

/** The same without a model: no energy. */
export function measureReplay(space: SpaceName, d: number, frame: Frame): Measured {
  const { labels, sizes } = clustersOf(frame.points, d, space);
  return { energy: null, clusters: sizes.length, labels, sizes, ...alignment(frame.points, d) };
}
