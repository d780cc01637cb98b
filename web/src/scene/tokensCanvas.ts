// Tokens on a plain canvas: the same picture on machines without WebGL.
import { isFlat } from "./geometry.ts";
import type { TokenLayer, TokenPicture, Trails } from "./layer.ts";
import { backToFront, clarity } from "./order.ts";
import { type Colour, mix, toCss } from "./palette.ts";
import { DISTANCE, type Viewpoint } from "./viewpoint.ts";

export function makeCanvasLayer(): TokenLayer {
  return new CanvasLayer();
}

class CanvasLayer implements TokenLayer {
  readonly kind = "canvas";
  readonly canvas = document.createElement("canvas");
  private ratio = 1;

  resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
  }

  draw(picture: TokenPicture, view: Viewpoint): void {
    const pen = this.canvas.getContext("2d");
    if (pen === null) return;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, view.width, view.height);
    if (picture.trails !== null) drawTrails(pen, picture.trails, view);
    drawDiscs(pen, picture, view);
    if (picture.ghosts !== null) drawRings(pen, picture, picture.ghosts, view);
  }

  dispose(): void {
    this.canvas.remove();
  }
}

/** Share of its colour that a point keeps, by the side of the solid it is on. */
function clarityAt(view: Viewpoint, x: number, y: number, z: number): number {
  if (isFlat(view.stage)) return 1;
  const eye = view.camera.position;
  return clarity((eye.x * x + eye.y * y + eye.z * z) / eye.length());
}

function drawDiscs(pen: CanvasRenderingContext2D, picture: TokenPicture, view: Viewpoint): void {
  const { world, colours, count, radius, background, ink, opacity } = picture;
  pen.globalAlpha = opacity;
  pen.lineWidth = 1;
  for (const i of backToFront(world, count, view)) {
    const [x, y, z] = [world[3 * i]!, world[3 * i + 1]!, world[3 * i + 2]!];
    const place = view.project(x, y, z);
    const own: Colour = [colours[3 * i]!, colours[3 * i + 1]!, colours[3 * i + 2]!];
    const share = clarityAt(view, x, y, z);
    circlePath(pen, place.x, place.y, radius * (DISTANCE / place.depth) ** 0.6);
    pen.fillStyle = toCss(mix(background, own, share));
    pen.fill();
    pen.strokeStyle = toCss(mix(background, mix(own, ink, 0.42), share));
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function drawRings(pen: CanvasRenderingContext2D, picture: TokenPicture, ghosts: Float32Array, view: Viewpoint): void {
  pen.lineWidth = 1.4;
  for (let i = 0; i < ghosts.length / 3; i += 1) {
    const [x, y, z] = [ghosts[3 * i]!, ghosts[3 * i + 1]!, ghosts[3 * i + 2]!];
    const place = view.project(x, y, z);
    pen.strokeStyle = toCss(mix(picture.background, picture.ink, clarityAt(view, x, y, z)));
    circlePath(pen, place.x, place.y, 1.35 * picture.radius * (DISTANCE / place.depth) ** 0.6);
    pen.stroke();
  }
}

function drawTrails(pen: CanvasRenderingContext2D, trails: Trails, view: Viewpoint): void {
  const { ends, colours, ages } = trails;
  pen.lineWidth = 1;
  for (let piece = 0; piece < ages.length / 2; piece += 1) {
    const at = 6 * piece;
    const from = view.project(ends[at]!, ends[at + 1]!, ends[at + 2]!);
    const to = view.project(ends[at + 3]!, ends[at + 4]!, ends[at + 5]!);
    pen.strokeStyle = toCss([colours[at]!, colours[at + 1]!, colours[at + 2]!], 0.75 * (1 - ages[2 * piece]!));
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
  }
}

function circlePath(pen: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
}
