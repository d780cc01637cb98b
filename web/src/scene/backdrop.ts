// What lies behind the tokens: the translucent sphere with its graticule, the circle, the box, the axes.
import { tickText, ticks } from "./geometry.ts";
import { mix, toCss } from "./palette.ts";
import { FONT, type Theme } from "./theme.ts";
import type { Viewpoint } from "./viewpoint.ts";

type Pen = CanvasRenderingContext2D;
type Point = [number, number, number];

export function drawBackdrop(pen: Pen, view: Viewpoint, theme: Theme, extent: number): void {
  pen.fillStyle = toCss(theme.background);
  pen.fillRect(0, 0, view.width, view.height);
  if (view.stage === "sphere") drawSphere(pen, view, theme);
  if (view.stage === "circle") drawCircle(pen, view, theme);
  if (view.stage === "box") drawBox(pen, view, theme, extent);
  if (view.stage === "plane") drawPlane(pen, view, theme, extent);
}

/** A sphere around the target is seen as a disc: of radius 1 / sqrt(D^2 - 1) per unit of focal length. */
function drawSphere(pen: Pen, view: Viewpoint, theme: Theme): void {
  const distance = view.camera.position.length();
  const radius = (view.unit * distance) / Math.sqrt(distance * distance - 1);
  const [x, y] = [view.width / 2, view.height / 2];
  const glow = pen.createRadialGradient(x - 0.3 * radius, y - 0.35 * radius, 0.1 * radius, x, y, radius);
  glow.addColorStop(0, toCss(theme.sphere[0]));
  glow.addColorStop(1, toCss(theme.sphere[1]));
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = glow;
  pen.fill();
  drawGraticule(pen, view, theme);
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.strokeStyle = toCss(theme.faint);
  pen.lineWidth = 1.2;
  pen.stroke();
}

/** Meridians and parallels every 30 degrees; lines on the far side are fainter. */
function drawGraticule(pen: Pen, view: Viewpoint, theme: Theme): void {
  const lines: Point[][] = [];
  for (let k = 0; k < 6; k += 1) lines.push(arc((s) => meridian((k * Math.PI) / 6, s)));
  for (let k = -2; k <= 2; k += 1) lines.push(arc((s) => parallel((k * Math.PI) / 6, s)));
  const near = new Path2D();
  const far = new Path2D();
  const eye = view.camera.position;
  for (const line of lines) {
    const seen = line.map(([x, y, z]) => view.project(x, y, z));
    for (let i = 1; i < line.length; i += 1) {
      const [x, y, z] = line[i]!;
      // A point of the unit sphere faces the eye when <x, eye> > 1.
      const path = x * eye.x + y * eye.y + z * eye.z > 1 ? near : far;
      path.moveTo(seen[i - 1]!.x, seen[i - 1]!.y);
      path.lineTo(seen[i]!.x, seen[i]!.y);
    }
  }
  pen.lineWidth = 1;
  pen.strokeStyle = toCss(theme.faint, 0.22);
  pen.stroke(far);
  pen.strokeStyle = toCss(theme.faint, 0.55);
  pen.stroke(near);
}

function arc(at: (turn: number) => Point): Point[] {
  return Array.from({ length: 73 }, (_, i) => at((i * 2 * Math.PI) / 72));
}

const meridian = (longitude: number, s: number): Point => [
  Math.cos(s) * Math.cos(longitude),
  Math.cos(s) * Math.sin(longitude),
  Math.sin(s),
];

const parallel = (latitude: number, s: number): Point => [
  Math.cos(latitude) * Math.cos(s),
  Math.cos(latitude) * Math.sin(s),
  Math.sin(latitude),
];

function drawCircle(pen: Pen, view: Viewpoint, theme: Theme): void {
  const centre = view.project(0, 0, 0);
  pen.beginPath();
  pen.arc(centre.x, centre.y, view.unit, 0, 2 * Math.PI);
  pen.fillStyle = toCss(mix(theme.background, theme.sphere[0], 0.45));
  pen.fill();
  pen.strokeStyle = toCss(mix(theme.faint, theme.ink, 0.15));
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.strokeStyle = toCss(theme.faint, 0.45);
  pen.lineWidth = 1;
  strokeLine(pen, centre.x - 5, centre.y, centre.x + 5, centre.y);
  strokeLine(pen, centre.x, centre.y - 5, centre.x, centre.y + 5);
}

const CORNERS: Point[] = [-1, 1].flatMap((x) => [-1, 1].flatMap((y) => [-1, 1].map((z): Point => [x, y, z])));

/** The box [-extent, extent]^3: faint edges, and the three axes with their length. */
function drawBox(pen: Pen, view: Viewpoint, theme: Theme, extent: number): void {
  pen.strokeStyle = toCss(theme.faint, 0.6);
  pen.lineWidth = 1;
  for (const from of CORNERS) {
    for (let axis = 0; axis < 3; axis += 1) {
      if (from[axis] !== -1) continue;
      const to: Point = [...from];
      to[axis] = 1;
      strokeBetween(pen, view, from, to);
    }
  }
  pen.fillStyle = toCss(mix(theme.faint, theme.ink, 0.5));
  pen.font = `12px ${FONT}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  ["x₁", "x₂", "x₃"].forEach((name, axis) => {
    const tip: Point = [0, 0, 0];
    tip[axis] = 1;
    strokeBetween(pen, view, [0, 0, 0], tip);
    const beyond = view.project(...(tip.map((part) => 1.1 * part) as Point));
    pen.fillText(`${name} = ${tickText(extent)}`, beyond.x, beyond.y);
  });
}

/** Grid lines at round numbers, written along the axes through the origin, or at the edge when those are out of view. */
function drawPlane(pen: Pen, view: Viewpoint, theme: Theme, extent: number): void {
  const { unit, target, width, height } = view;
  const origin = view.project(0, 0, 0);
  const scale = unit / extent;
  const axis = { x: Math.min(width - 34, Math.max(0, origin.x)), y: Math.min(height - 46, Math.max(40, origin.y)) };
  pen.font = `11px ${FONT}`;
  pen.lineWidth = 1;
  pen.fillStyle = toCss(mix(theme.faint, theme.ink, 0.4));
  const values = (middle: number, side: number) =>
    ticks(middle * extent - side / 2 / scale, middle * extent + side / 2 / scale, side / 90);
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const value of values(target.x, width)) {
    const x = Math.round(origin.x + value * scale) + 0.5;
    pen.strokeStyle = toCss(theme.faint, value === 0 ? 0.9 : 0.3);
    strokeLine(pen, x, 0, x, height);
    if (value !== 0) pen.fillText(tickText(value), x, axis.y + 4);
  }
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const value of values(target.y, height)) {
    const y = Math.round(origin.y - value * scale) + 0.5;
    pen.strokeStyle = toCss(theme.faint, value === 0 ? 0.9 : 0.3);
    strokeLine(pen, 0, y, width, y);
    if (value !== 0) pen.fillText(tickText(value), axis.x + 5, y);
  }
}

function strokeBetween(pen: Pen, view: Viewpoint, from: Point, to: Point): void {
  const [a, b] = [view.project(...from), view.project(...to)];
  strokeLine(pen, a.x, a.y, b.x, b.y);
}

function strokeLine(pen: Pen, x0: number, y0: number, x1: number, y1: number): void {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
