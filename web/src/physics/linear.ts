// Small matrices and rows of coordinates. Matrices are d x d, row-major.

/** N(x) = x/|x| for every row; a zero row stays zero. */
export function normaliseRows(x: Float64Array, d: number): Float64Array {
  for (let start = 0; start < x.length; start += d) {
    let squared = 0;
    for (let k = start; k < start + d; k++) squared += x[k]! * x[k]!;
    const scale = squared === 0 ? 0 : 1 / Math.sqrt(squared);
    for (let k = start; k < start + d; k++) x[k]! *= scale;
  }
  return x;
}

/** Matrix product of two d x d matrices. */
export function multiply(a: Float64Array, b: Float64Array, d: number): Float64Array {
  const product = new Float64Array(d * d);
  for (let i = 0; i < d; i++)
    for (let j = 0; j < d; j++)
      for (let k = 0; k < d; k++) product[i * d + j]! += a[i * d + k]! * b[k * d + j]!;
  return product;
}

export function identity(d: number, scale = 1): Float64Array {
  const matrix = new Float64Array(d * d);
  for (let i = 0; i < d; i++) matrix[i * d + i] = scale;
  return matrix;
}

/** Frobenius norm, an upper bound of the spectral norm. */
export function norm(matrix: Float64Array): number {
  return Math.hypot(...matrix);
}

/** e^A by scaling, a Taylor polynomial and squaring: relative error about 1e-15 |A|. */
export function exponential(matrix: Float64Array, d: number): Float64Array {
  const halvings = Math.max(0, Math.ceil(Math.log2(norm(matrix) / 0.25 || 1)));
  const small = matrix.map((entry) => entry / 2 ** halvings);
  let result = identity(d);
  for (let k = 14; k >= 1; k--) {
    result = multiply(small, result, d).map((entry) => entry / k);
    for (let i = 0; i < d; i++) result[i * d + i]! += 1;
  }
  for (let k = 0; k < halvings; k++) result = multiply(result, result, d);
  return result;
}

/** Rows of nested lists as one row-major array. */
export function flatten(rows: readonly (readonly number[])[]): Float64Array {
  return Float64Array.from(rows.flat());
}
