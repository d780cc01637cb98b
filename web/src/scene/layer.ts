// What draws tokens: three.js where there is WebGL2, a plain canvas where there is not.
import type { Colour } from "./palette.ts";
import type { Viewpoint } from "./viewpoint.ts";

export interface TokenPicture {
  count: number;
  world: Float32Array; // count * 3, scene coordinates
  colours: Float32Array; // count * 3
  radius: number; // CSS pixels, for a token at the nominal distance
  opacity: number;
  ghosts: Float32Array | null; // tokens of the exact run, drawn as rings
  trails: Trails | null;
  background: Colour;
  ink: Colour;
}

/** Line pieces behind the tokens. */
export interface Trails {
  ends: Float32Array; // pieces * 2 * 3, scene coordinates
  colours: Float32Array; // pieces * 2 * 3
  ages: Float32Array; // pieces * 2: 0 = now, 1 = about to vanish
}

export interface TokenLayer {
  readonly canvas: HTMLCanvasElement;
  readonly kind: "webgl2" | "canvas";
  resize(width: number, height: number, ratio: number): void; // CSS pixels
  draw(picture: TokenPicture, view: Viewpoint): void;
  dispose(): void;
}
