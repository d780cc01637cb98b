// How close tokens are: the density of the cosines of all pairs on [-1, 1].
import { useEffect, useRef } from "preact/hooks";
import type { Store } from "../app/contract.ts";
import { cosineHistogram } from "../observe/index.ts";
import { preparePen } from "./canvas.ts";
import { type Look, lookOf } from "./look.ts";
import { pacedDrawing } from "./paced.ts";

const BINS = 60;
const HEIGHT = 150;
const MARGIN = { left: 46, right: 10, top: 8, bottom: 22 };

export function Histogram({ store }: { store: Store }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const target = canvas.current;
    if (target === null) return; // taken away before it was shown
    const draw = (): void => drawHistogram(target, store);
    return pacedDrawing(target, () => [store.frame.value, store.d.value, store.dark.value], draw);
  }, [store]);
  return (
    <figure class="tfc-card">
      <figcaption>Cosines of pairs of tokens</figcaption>
      <div class="tfc-plot">
        <canvas ref={canvas} style={{ height: `${HEIGHT}px` }} role="img" aria-label="Histogram of the cosines of all pairs of tokens" />
      </div>
      <p class="tfc-note">−1 is opposite, 0 orthogonal, 1 together; {store.n.value} tokens, {BINS} bins</p>
    </figure>
  );
}

function drawHistogram(canvas: HTMLCanvasElement, store: Store): void {
  const width = canvas.parentElement?.clientWidth ?? 0;
  if (width === 0) return;
  const pen = preparePen(canvas, width, HEIGHT);
  if (pen === null) return;
  const look = lookOf(store.dark.peek());
  const density = cosineHistogram(store.frame.peek(), store.d.peek(), BINS);
  const most = Math.max(1, ...density);
  const box = { ...MARGIN, width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  drawFrame(pen, box, look, most);
  pen.fillStyle = look.bar;
  const step = box.width / BINS;
  density.forEach((value, i) => {
    const tall = (value / most) * box.height;
    pen.fillRect(box.left + i * step + 0.5, box.top + box.height - tall, Math.max(1, step - 1), tall);
  });
}

function drawFrame(
  pen: CanvasRenderingContext2D,
  box: typeof MARGIN & { width: number; height: number },
  look: Look,
  most: number,
): void {
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = look.text;
  pen.strokeStyle = look.grid;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const cosine of [-1, -0.5, 0, 0.5, 1]) {
    const x = box.left + ((cosine + 1) / 2) * box.width;
    pen.fillText(String(cosine).replace("-", "−"), x, box.top + box.height + 5);
    pen.beginPath();
    pen.moveTo(x, box.top);
    pen.lineTo(x, box.top + box.height);
    pen.stroke();
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillText(String(Number(most.toPrecision(2))), box.left - 6, box.top + 5);
  pen.fillText("0", box.left - 6, box.top + box.height - 3);
}
