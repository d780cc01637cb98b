// What is written under an exported picture, so that it can be understood, and made again, without the page.
import type { Store } from "../app/contract.ts";
import { toCss } from "../scene/palette.ts";
import { FONT, themeOf } from "../scene/theme.ts";

export interface Caption {
  title: string;
  settings: string;
}

export function captionOf(store: Store): Caption {
  const source = store.source.peek();
  const { time } = store.frame.peek();
  const { clusters } = store.measured.peek();
  const found = clusters === 1 ? "1 cluster" : `${clusters} clusters`;
  if (source.kind === "replay") {
    const { title, dimension, clock } = source.replay;
    const when = clock === "layer" ? `layer ${time}` : `t = ${timeText(time)}`;
    return { title, settings: `n = ${store.n.peek()}, d = ${dimension}, ${when}, ${found}` };
  }
  const { title, model } = store.spec.peek();
  const beta = model.beta === undefined ? [] : [`β = ${Number(model.beta.toPrecision(6))}`];
  const parts = [model.name, ...beta, `n = ${store.n.peek()}`, `d = ${store.d.peek()}`, `t = ${timeText(time)}`, found];
  return { title: title === "" ? "tokenflock" : title, settings: parts.join(", ") };
}

export function timeText(time: number): string {
  return Math.abs(time) >= 1e5 ? time.toExponential(2) : time.toFixed(2);
}

/** Height of the band the caption needs, for a picture of that width. */
export function captionHeight(width: number): number {
  return 2 * Math.round(Math.max(44, Math.min(64, width / 16)) / 2);
}

/** Title and settings at the left, the name of the program at the right, on a band at (0, top). */
export function drawCaption(
  pen: CanvasRenderingContext2D,
  store: Store,
  top: number,
  width: number,
  height: number,
): void {
  const theme = themeOf(store.dark.peek());
  const { title, settings } = captionOf(store);
  const margin = height / 4;
  pen.fillStyle = toCss(theme.background);
  pen.fillRect(0, top, width, height);
  pen.textBaseline = "alphabetic";
  pen.fillStyle = toCss(theme.ink, 0.6);
  pen.font = `${Math.round(height * 0.24)}px ${FONT}`;
  pen.textAlign = "right";
  pen.fillText("tokenflock", width - margin, top + 0.82 * height);
  const room = width - 3 * margin - pen.measureText("tokenflock").width;
  pen.textAlign = "left";
  pen.fillStyle = toCss(theme.ink);
  pen.font = `600 ${Math.round(height * 0.3)}px ${FONT}`;
  pen.fillText(fitted(pen, title, width - 2 * margin), margin, top + 0.42 * height);
  pen.font = `${Math.round(height * 0.26)}px ${FONT}`;
  pen.fillText(fitted(pen, settings, room), margin, top + 0.82 * height);
}

function fitted(pen: CanvasRenderingContext2D, text: string, room: number): string {
  if (pen.measureText(text).width <= room) return text;
  let kept = text;
  while (kept.length > 1 && pen.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
  return `${kept}…`;
}
