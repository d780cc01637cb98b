// A screen for tests: its frames are displayed when a test asks for them.

let waiting: FrameRequestCallback[] = [];

/** Empty, and in the place of the browser's. */
export function useScreen(): void {
  waiting = [];
  globalThis.requestAnimationFrame = (call) => waiting.push(call);
  globalThis.cancelAnimationFrame = (handle) => void (waiting[handle - 1] = () => undefined);
}

/** Let the page display that many frames. */
export function display(count: number): void {
  for (let k = 0; k < count; k++) waiting.splice(0).forEach((call) => call(performance.now()));
}
