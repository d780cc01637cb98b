// What is read off a frame of tokens: a few milliseconds at n = 1,000, tens at n = 4,096 (most of it the energy,
// O(n^2) on the sphere at large beta), so callers that show many frames a second measure some of them.
import type { Frame, Measured } from "../app/contract.ts";
import { modelOf } from "../physics/model.ts";
import { dimension, type SpaceName, spaceOf } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import { clustersOf } from "./clusters.ts";
import { energyOf } from "./energy.ts";
import { alignment } from "./pairs.ts";

export { linkAngle } from "./clusters.ts";
export { circleDensity, DENSITY_BANDWIDTH } from "./density.ts";
export { attentionMatrix, attentionRow, cosineHistogram } from "./pairs.ts";

/** Energy, clusters, order and mean cosine. */
export function measure(spec: Spec, frame: Frame): Measured {
  const energy = energyOf(modelOf(spec), frame);
  return { ...measureReplay(spaceOf(spec), dimension(spec), frame), energy };
}

/** The same without a model: no energy. */
export function measureReplay(space: SpaceName, d: number, frame: Frame): Measured {
  const { labels, sizes } = clustersOf(frame.points, d, space);
  return { energy: null, clusters: sizes.length, labels, sizes, ...alignment(frame.points, d) };
}
