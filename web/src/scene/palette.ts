// Colours that people with any colour vision can tell apart, as sRGB numbers from 0 to 1.

export type Colour = readonly [number, number, number];

export function fromHex(hex: string): Colour {
  const value = Number.parseInt(hex.replace("#", ""), 16);
  return [((value >> 16) & 255) / 255, ((value >> 8) & 255) / 255, (value & 255) / 255];
}

export function toCss(colour: Colour, alpha = 1): string {
  const [r, g, b] = colour.map((part) => Math.round(part * 255));
  return alpha === 1 ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

export function mix(from: Colour, to: Colour, share: number): Colour {
  return [
    from[0] + (to[0] - from[0]) * share,
    from[1] + (to[1] - from[1]) * share,
    from[2] + (to[2] - from[2]) * share,
  ];
}

const WHITE: Colour = [1, 1, 1];
const BLACK: Colour = [0, 0, 0];

// Okabe and Ito, "Color Universal Design" (2008), in an order that puts the best separated pairs first.
const OKABE_ITO = ["E69F00", "0072B2", "009E73", "CC79A7", "56B4E9", "D55E00", "F0E442"].map(fromHex);
const SLOTS_PER_SHADE = OKABE_ITO.length + 1;

/** The colour of the slot-th cluster: eight hues (the eighth is ink), then lighter and darker shades of them. */
export function categorical(slot: number, dark: boolean): Colour {
  const hue = slot % SLOTS_PER_SHADE;
  const shade = Math.floor(slot / SLOTS_PER_SHADE) % 3;
  const ink = dark ? fromHex("E8EAED") : fromHex("30343B");
  const base = OKABE_ITO[hue] ?? ink;
  if (shade === 0) return legible(base, hue, dark);
  return shade === 1 ? mix(base, dark ? WHITE : BLACK, 0.38) : mix(base, dark ? BLACK : WHITE, 0.38);
}

/** Blue sinks into a dark page and yellow into a white one: both are moved a little towards the middle. */
function legible(base: Colour, hue: number, dark: boolean): Colour {
  if (dark && hue === 1) return fromHex("2F93D6");
  if (!dark && hue === 6) return fromHex("D6C400");
  return base;
}

/** Tokens that belong to no cluster. */
export function loneColour(dark: boolean): Colour {
  return dark ? fromHex("8A919C") : fromHex("8C929B");
}

// Ten samples of matplotlib's maps, both perceptually uniform; cividis is made for red-green colour blindness.
const VIRIDIS = "440154 482878 3E4989 31688E 26828E 1F9E89 35B779 6ECE58 B5DE2B FDE725".split(" ").map(fromHex);
const CIVIDIS = "00224E 123570 3B496C 575D6D 707173 8A8678 A59C74 C3B369 E1CC55 FEE838".split(" ").map(fromHex);

function along(samples: Colour[], share: number): Colour {
  const place = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * (samples.length - 1);
  const below = Math.min(samples.length - 2, Math.floor(place));
  return mix(samples[below]!, samples[below + 1]!, place - below);
}

export const viridis = (share: number): Colour => along(VIRIDIS, share);
export const cividis = (share: number): Colour => along(CIVIDIS, share);

/** A CSS gradient of a map, for legends. */
export function gradient(map: (share: number) => Colour): string {
  const stops = Array.from({ length: 9 }, (_, i) => toCss(map(i / 8)));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
