// The run as a video: MP4 where the browser can encode H.264, else WebM.
import { BufferTarget, CanvasSource, getFirstEncodableVideoCodec, Mp4OutputFormat, Output, QUALITY_HIGH, WebMOutputFormat } from "mediabunny";
import type { Store } from "../app/contract.ts";
import { RATE } from "./frames.ts";
import { recordReel } from "./record.ts";
import { openReel, type Reel } from "./reel.ts";

export interface Video {
  blob: Blob;
  extension: "mp4" | "webm";
}

type Progress = (fraction: number) => void;

/** Aborting `signal` rejects with an AbortError and leaves the page as it was. */
export async function exportVideo(store: Store, onProgress: Progress, signal: AbortSignal): Promise<Video> {
  signal.throwIfAborted();
  const reel = openReel(store);
  try {
    const codec = await chooseCodec(reel);
    if (codec === null) return await recordReel(reel, onProgress, signal);
    return await encodeReel(reel, codec, onProgress, signal);
  } finally {
    reel.end();
  }
}

type Codec = "avc" | "vp9" | "vp8";

/** Null where there is no encoder at all: no WebCodecs, or a page that is neither https nor localhost. */
async function chooseCodec({ canvas }: Reel): Promise<Codec | null> {
  if (typeof VideoEncoder === "undefined") return null;
  const wanted: Codec[] = ["avc", "vp9", "vp8"];
  const size = { width: canvas.width, height: canvas.height, quality: QUALITY_HIGH };
  return (await getFirstEncodableVideoCodec(wanted, size)) as Codec | null;
}

async function encodeReel(reel: Reel, codec: Codec, onProgress: Progress, signal: AbortSignal): Promise<Video> {
  const extension = codec === "avc" ? "mp4" : "webm";
  const format = codec === "avc" ? new Mp4OutputFormat({ fastStart: "in-memory" }) : new WebMOutputFormat();
  const target = new BufferTarget();
  const output = new Output({ format, target });
  const source = new CanvasSource(reel.canvas, { codec, quality: QUALITY_HIGH });
  output.addVideoTrack(source, { frameRate: RATE });
  try {
    await output.start();
    for (let index = 0; index < reel.length; index += 1) {
      signal.throwIfAborted();
      reel.draw(index);
      await source.add(index / RATE, 1 / RATE);
      onProgress((index + 1) / reel.length);
      await breathe();
    }
    await output.finalize();
  } catch (problem) {
    await output.cancel();
    throw problem;
  }
  if (target.buffer === null) throw new Error("The encoder gave no video.");
  return { blob: new Blob([target.buffer], { type: `video/${extension}` }), extension };
}

/** Let the page answer between two frames: a cancel must be heard. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
