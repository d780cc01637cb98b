// A canvas that fits its place on the page, in device pixels.

export function preparePen(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
  const [pixelsWide, pixelsHigh] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixelsWide) canvas.width = pixelsWide;
  if (canvas.height !== pixelsHigh) canvas.height = pixelsHigh;
  // Small and drawn in few strokes: the processor is quicker than asking the graphics card.
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen?.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen?.clearRect(0, 0, width, height);
  return pen;
}

/** Values (rows * columns, null = not known) as one pixel each, for `drawImage` to enlarge. */
export function asImage(
  rows: number,
  columns: number,
  colourOf: (index: number) => readonly [number, number, number] | null,
): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const image = new ImageData(canvas.width, canvas.height);
  for (let i = 0; i < rows * columns; i += 1) {
    const colour = colourOf(i);
    if (colour === null) continue;
    for (let part = 0; part < 3; part += 1) image.data[4 * i + part] = Math.round(colour[part]! * 255);
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}
