// e^x twice as fast as Math.exp, for the sums over pairs: e^x = 2^q 2^(i/2048) e^r with two tables and a short
// polynomial. Within 5e-16 of Math.exp (checked in tests/web/test_physics.py).
const PARTS = 2048;
const LARGEST = 700; // beyond, the tables end

const FRACTIONS = Float64Array.from({ length: PARTS }, (_, i) => 2 ** (i / PARTS));
const OFFSET = 1074;
const POWERS = Float64Array.from({ length: 2 * OFFSET - 50 }, (_, i) => 2 ** (i - OFFSET));

// log(2)/2048 in two pieces: the first has 21 zero bits at its end, so that multiples of it are exact.
const SCALE = PARTS / Math.LN2;
const STEP_HIGH = Math.round((Math.LN2 / PARTS) * 2 ** 43) / 2 ** 43;
const STEP_LOW = 1.9082149292705877e-10 / PARTS + (0.6931471803691238 / PARTS - STEP_HIGH);

/** e^x. */
export function quickExp(x: number): number {
  if (!(x > -LARGEST && x < LARGEST)) return Math.exp(x);
  const whole = Math.floor(x * SCALE + 0.5);
  const r = x - whole * STEP_HIGH - whole * STEP_LOW;
  const tail = 1 + r * (1 + r * (0.5 + r * (1 / 6 + r / 24)));
  return FRACTIONS[whole & (PARTS - 1)]! * POWERS[(whole >> 11) + OFFSET]! * tail;
}
