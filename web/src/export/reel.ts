// The frames of a video: the history of the run, drawn one by one at the size of the video.
import type { Store } from "../app/contract.ts";
import { sceneOf } from "../scene/registry.ts";
import { captionHeight, drawCaption } from "./caption.ts";
import { framesShown } from "./frames.ts";

const WIDTH = 1280; // even, as video codecs want it
const HEIGHT = 720;

export interface Reel {
  readonly canvas: HTMLCanvasElement;
  readonly length: number;
  draw(index: number): void; // put that frame of the video on the canvas
  end(): void; // give the page back as it was
}

export function openReel(store: Store): Reel {
  const scene = sceneOf(store);
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  // The encoder reads every frame back, so the canvas lives in main memory.
  const pen = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
  if (pen === null) throw new Error("This browser gives no canvas to draw the video on.");
  const film = store.film();
  const frames = framesShown(film.length);
  const band = captionHeight(WIDTH);
  scene.pose(WIDTH, HEIGHT - band, 1);
  return {
    canvas,
    length: frames.length,
    draw(index) {
      film.show(frames[index]!);
      scene.paint(pen);
      drawCaption(pen, store, HEIGHT - band, WIDTH, band);
    },
    end() {
      scene.rest();
      film.end();
    },
  };
}
