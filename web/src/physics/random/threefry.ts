// The engine's random numbers: threefry2x32 in JAX's partitionable layout (Salmon et al. 2011; jax.random).
// Entry i of an array is the hash of the counter (0, i) under the key, so any entry can be drawn alone.

export type Key = readonly [number, number];

const ROTATIONS = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;
const PARITY = 0x1bd11bda;

/** 20 rounds of threefry2x32 on the counter (high, low); two words of 32 bits. */
export function threefry(key: Key, high: number, low: number): [number, number] {
  const schedule = [key[0], key[1], (key[0] ^ key[1] ^ PARITY) >>> 0];
  let a = (high + schedule[0]!) >>> 0;
  let b = (low + schedule[1]!) >>> 0;
  for (let group = 0; group < 5; group++) {
    for (const turn of ROTATIONS[group % 2]!) {
      a = (a + b) >>> 0;
      b = ((b << turn) | (b >>> (32 - turn))) >>> 0;
      b = (a ^ b) >>> 0;
    }
    a = (a + schedule[(group + 1) % 3]!) >>> 0;
    b = (b + schedule[(group + 2) % 3]! + group + 1) >>> 0;
  }
  return [a, b];
}

/** jax.random.key(seed): the 64 bits of the seed. Seeds are exact up to 2^53. */
export function keyOf(seed: number): Key {
  return [Math.floor(seed / 2 ** 32) >>> 0, seed % 2 ** 32 >>> 0];
}

/** jax.random.split: `count` independent keys. */
export function split(key: Key, count = 2): Key[] {
  return Array.from({ length: count }, (_, index) => threefry(key, 0, index));
}

/** jax.random.fold_in: the key of a numbered child. */
export function foldIn(key: Key, data: number): Key {
  return threefry(key, 0, data >>> 0);
}

/** Entry `index` of jax.random.uniform(key, shape, float64): 52 random bits in [0, 1). */
export function uniformAt(key: Key, index: number): number {
  const [high, low] = threefry(key, 0, index);
  return (high * 2 ** 20 + (low >>> 12)) / 2 ** 52;
}

/** jax.random.uniform(key, (size,), minval=low, maxval=high). */
export function uniform(key: Key, size: number, low = 0, high = 1): Float64Array {
  const values = new Float64Array(size);
  for (let i = 0; i < size; i++) values[i] = Math.max(low, uniformAt(key, i) * (high - low) + low);
  return values;
}
