// Modified Bessel functions, exponentially scaled, by Miller's backward recurrence (DLMF 10.74(iv), 3.6).

/**
 * e^{-x} I_k(x) for k = 0..most, or e^{-x} i_k(x) of the modified spherical functions, x > 0.
 * Normalised by I_0 + 2 sum I_k = e^x and by sum (2k+1) i_k = e^x.
 */
export function scaledBessel(most: number, x: number, spherical = false): Float64Array {
  const values = new Float64Array(most + 1);
  const start = Math.ceil(Math.max(most, 2) + 20 + 8 * Math.sqrt(x + most));
  let next = 0;
  let current = 1e-250;
  let total = 0;
  for (let k = start; k >= 0; k--) {
    if (k <= most) values[k] = current;
    total += (spherical ? 2 * k + 1 : k === 0 ? 1 : 2) * current;
    const order = spherical ? 2 * k + 1 : 2 * k;
    [next, current] = [current, (order / x) * current + next];
    if (current > 1e250) [next, current, total] = scaledDown(values, next, current, total);
  }
  return values.map((value) => value / total);
}

function scaledDown(values: Float64Array, ...numbers: number[]): [number, number, number] {
  for (let k = 0; k < values.length; k++) values[k]! *= 1e-250;
  return numbers.map((number) => number * 1e-250) as [number, number, number];
}
