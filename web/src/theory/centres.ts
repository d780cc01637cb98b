// Renyi centres of tokens in reading order (tokenflock/observables/centres.py; 2411.04990, section 5).

/** Tokens farther than `distance` (an angle) from every centre kept before. O(n times centres). */
export function renyiCentres(points: Float64Array, d: number, distance: number): number[] {
  const threshold = (2 * Math.sin(distance / 2)) ** 2;
  const centres: number[] = [];
  for (let i = 0; i < points.length / d; i++) {
    const near = centres.some((j) => {
      let squared = 0;
      for (let k = 0; k < d; k++) squared += (points[i * d + k]! - points[j * d + k]!) ** 2;
      return squared <= threshold;
    });
    if (!near) centres.push(i);
  }
  return centres;
}
