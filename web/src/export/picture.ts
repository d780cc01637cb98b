// A PNG of the scene with its caption, at twice the size of the screen.
import type { Store } from "../app/contract.ts";
import { sceneOf } from "../scene/registry.ts";
import { captionHeight, drawCaption } from "./caption.ts";

const SCALE = 2;

export async function exportPicture(store: Store): Promise<Blob> {
  const scene = sceneOf(store);
  const { width, height } = scene.view;
  scene.pose(width, height, SCALE);
  try {
    return await toBlob(withCaption(store, scene.shot()));
  } finally {
    scene.rest();
  }
}

function withCaption(store: Store, picture: HTMLCanvasElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  const band = SCALE * captionHeight(picture.width / SCALE);
  canvas.width = picture.width;
  canvas.height = picture.height + band;
  const pen = canvas.getContext("2d");
  if (pen === null) throw new Error("This browser gives no canvas to write the picture on.");
  pen.drawImage(picture, 0, 0);
  drawCaption(pen, store, picture.height, canvas.width, band);
  return canvas;
}

function toBlob(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const done = (blob: Blob | null) =>
      blob === null ? reject(new Error("The browser could not write the picture as PNG.")) : resolve(blob);
    canvas.toBlob(done, "image/png");
  });
}
