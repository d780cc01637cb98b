// Without WebCodecs: the browser records the canvas while the frames are played, in real time.
import { RATE } from "./frames.ts";
import type { Reel } from "./reel.ts";
import type { Video } from "./video.ts";

const TYPES = [
  { mime: "video/mp4;codecs=avc1.42E01F", extension: "mp4" },
  { mime: "video/webm;codecs=vp9", extension: "webm" },
  { mime: "video/webm", extension: "webm" },
] as const;

export async function recordReel(reel: Reel, onProgress: (fraction: number) => void, signal: AbortSignal): Promise<Video> {
  const type = typeof MediaRecorder === "undefined" ? undefined : TYPES.find(({ mime }) => MediaRecorder.isTypeSupported(mime));
  if (type === undefined) {
    throw new Error("This browser can neither encode nor record video; export a picture, or open the page in another browser.");
  }
  const stream = reel.canvas.captureStream(RATE);
  const recorder = new MediaRecorder(stream, { mimeType: type.mime, videoBitsPerSecond: 8_000_000 });
  const pieces: Blob[] = [];
  recorder.ondataavailable = ({ data }) => pieces.push(data);
  const stopped = new Promise<void>((resolve, reject) => {
    recorder.onstop = () => resolve();
    recorder.onerror = () => reject(new Error("The browser stopped recording the video."));
  });
  reel.draw(0);
  recorder.start();
  try {
    await playInRealTime(reel, onProgress, signal);
  } finally {
    if (recorder.state !== "inactive") recorder.stop();
    for (const track of stream.getTracks()) track.stop();
  }
  await stopped;
  return { blob: new Blob(pieces, { type: type.mime.split(";")[0]! }), extension: type.extension };
}

async function playInRealTime(reel: Reel, onProgress: (fraction: number) => void, signal: AbortSignal): Promise<void> {
  const start = performance.now();
  for (let index = 0; index < reel.length; index += 1) {
    signal.throwIfAborted();
    reel.draw(index);
    onProgress((index + 1) / reel.length);
    const due = start + ((index + 1) * 1_000) / RATE;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
  }
}
