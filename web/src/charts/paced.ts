// Work that follows the store, but neither more than ten times a second nor for more than a tenth of the time.
import { effect, untracked } from "@preact/signals";

const PAUSE_MS = 100;
const SHARE = 0.1;

/** Draws what hangs on the store, and again when its place changes its size. */
export function pacedDrawing(canvas: HTMLCanvasElement, read: () => unknown, draw: () => void): () => void {
  const stop = paced(read, draw);
  const watcher = new ResizeObserver(draw);
  watcher.observe(canvas.parentElement!);
  return () => {
    stop();
    watcher.disconnect();
  };
}

export function paced(read: () => unknown, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let earliest = 0;
  const run = (): void => {
    timer = undefined;
    const start = performance.now();
    untracked(work);
    const now = performance.now();
    earliest = now + Math.max(PAUSE_MS, (now - start) / SHARE);
  };
  const stop = effect(() => {
    read();
    timer ??= setTimeout(run, Math.max(0, earliest - performance.now()));
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}
