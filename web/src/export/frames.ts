// Which moments of a run a video shows.

export const RATE = 30; // frames per second
export const MOST_SECONDS = 20;

/** Which frames of a history of that length are shown: all, or as many as fit, evenly, with both ends. */
export function framesShown(length: number): number[] {
  const most = RATE * MOST_SECONDS;
  if (length <= most) return Array.from({ length }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.round((i * (length - 1)) / (most - 1)));
}
