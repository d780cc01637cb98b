// On the circle: the density of tokens as a curve around it, its modes marked.
import type { CircleDensity } from "../observe/density.ts";
import { toCss } from "./palette.ts";
import { FONT, type Theme } from "./theme.ts";
import type { Viewpoint } from "./viewpoint.ts";


const FOOT = 1.07; // radius of the zero line
const RISE = 0.34; // height of the tallest mode
const UNIFORM = 1 / (2 * Math.PI);
const LEAST_FULL_SCALE = 4 * UNIFORM; // so that a nearly uniform crowd looks nearly uniform

export function drawDensity(
  pen: CanvasRenderingContext2D,
  view: Viewpoint,
  theme: Theme,
  { angles, density, modes }: CircleDensity,
): void {
  const full = Math.max(LEAST_FULL_SCALE, Array.from(density).reduce((a, b) => Math.max(a, b), 0));
  const at = (angle: number, radius: number) => view.project(radius * Math.cos(angle), radius * Math.sin(angle), 0);
  const centre = at(0, 0);
  const foot = FOOT * view.unit;

  const curve = new Path2D();
  for (let i = 0; i <= angles.length; i += 1) {
    const k = i % angles.length;
    const { x, y } = at(angles[k]!, FOOT + (RISE * density[k]!) / full);
    if (i === 0) curve.moveTo(x, y);
    else curve.lineTo(x, y);
  }
  const filled = new Path2D(curve);
  filled.closePath();
  filled.moveTo(centre.x + foot, centre.y);
  filled.arc(centre.x, centre.y, foot, 0, 2 * Math.PI, true);
  pen.fillStyle = toCss(theme.accent, 0.16);
  pen.fill(filled, "evenodd");
  pen.strokeStyle = toCss(theme.accent, 0.85);
  pen.lineWidth = 1.5;
  pen.lineJoin = "round";
  pen.stroke(curve);

  pen.setLineDash([2, 5]);
  pen.strokeStyle = toCss(theme.accent, 0.45);
  pen.lineWidth = 1;
  pen.beginPath();
  pen.arc(centre.x, centre.y, (FOOT + (RISE * UNIFORM) / full) * view.unit, 0, 2 * Math.PI);
  pen.stroke();
  pen.setLineDash([]);
  for (let i = 0; i < modes.length; i += 1) {
    const height = (RISE * densityAt(density, angles, modes[i]!)) / full;
    drawMode(pen, theme, centre, at(modes[i]!, FOOT + height + 0.045), view.unit);
  }
  writeModes(pen, theme, centre, modes.length);
}

/** The bins are even, wherever they start. */
function densityAt(density: ArrayLike<number>, angles: ArrayLike<number>, angle: number): number {
  const bins = density.length;
  const place = Math.round(((angle - angles[0]!) * bins) / (2 * Math.PI));
  return density[((place % bins) + bins) % bins]!;
}

/** A wedge that points at the mode from outside. */
function drawMode(
  pen: CanvasRenderingContext2D,
  theme: Theme,
  centre: { x: number; y: number },
  tip: { x: number; y: number },
  unit: number,
): void {
  const size = Math.min(7, 0.035 * unit);
  const away = Math.hypot(tip.x - centre.x, tip.y - centre.y);
  const [ux, uy] = [(tip.x - centre.x) / away, (tip.y - centre.y) / away];
  pen.fillStyle = toCss(theme.accent);
  pen.beginPath();
  pen.moveTo(tip.x - ux * size * 0.6, tip.y - uy * size * 0.6);
  pen.lineTo(tip.x + ux * size - uy * size * 0.7, tip.y + uy * size + ux * size * 0.7);
  pen.lineTo(tip.x + ux * size + uy * size * 0.7, tip.y + uy * size - ux * size * 0.7);
  pen.fill();
}

function writeModes(pen: CanvasRenderingContext2D, theme: Theme, centre: { x: number; y: number }, modes: number): void {
  pen.fillStyle = toCss(theme.ink, 0.75);
  pen.font = `13px ${FONT}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(modes === 1 ? "1 mode of the density" : `${modes} modes of the density`, centre.x, centre.y + 22);
}
