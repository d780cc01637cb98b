// One chart over time: uPlot draws the lines, the legend below says what they are. A click goes to that time.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Store } from "../app/contract.ts";
import { align, nearestIndex, valueText } from "./lines.ts";
import { axis, type Look, lookOf } from "./look.ts";
import { paced } from "./paced.ts";
import { type Curve, curvesOf, type Quantity, type Span, spanOf } from "./series.ts";

interface Props {
  store: Store;
  title: string;
  quantities: Quantity[];
  logTime: Signal<boolean>;
  absent: string; // said when there is nothing to draw
}

const HEIGHT = 150;

export function TimeChart({ store, title, quantities, logTime, absent }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const curves = useSignal<Curve[]>([]);
  const pointed = useSignal<number | null>(null);
  useEffect(() => {
    if (host.current === null) return; // taken away before it was shown
    const chart = new Chart(host.current, store, pointed);
    const update = (): void => {
      const span = spanOf(store, logTime.value);
      curves.value = curvesOf(store, quantities, span);
      chart.show(curves.value, span, lookOf(store.dark.value));
    };
    const read = (): void => {
      void [store.track.value, store.curves.value, store.exact.value, store.dark.value, logTime.value, store.frame.value];
    };
    const stop = paced(read, update);
    const watcher = new ResizeObserver(() => chart.fit() || update());
    watcher.observe(host.current);
    return () => {
      stop();
      watcher.disconnect();
      chart.clear();
    };
  }, [store, logTime]);

  const empty = curves.value.length === 0;
  return (
    <figure class="tfc-card">
      <figcaption>{title}</figcaption>
      <div class="tfc-plot" ref={host} role="img" aria-label={title} title="Click or drag to go to that time" />
      {empty ? <p class="tfc-absent">{absent}</p> : <Key store={store} curves={curves.value} time={pointed.value} />}
    </figure>
  );
}

/** uPlot and what it was last told, so that it is made anew only when its lines are others. */
class Chart {
  private plot: uPlot | null = null;
  private made = "";
  private readonly host: HTMLElement;
  private readonly store: Store;
  private readonly pointed: Signal<number | null>;

  constructor(host: HTMLElement, store: Store, pointed: Signal<number | null>) {
    this.host = host;
    this.store = store;
    this.pointed = pointed;
  }

  show(curves: Curve[], span: Span, look: Look): void {
    if (curves.length === 0) return this.clear();
    if (this.host.clientWidth === 0) return;
    const { times, columns } = align(curves.map((curve) => curve.line));
    const data = [times, ...columns] as uPlot.AlignedData;
    const wanted = JSON.stringify([curves.map(({ label, kind }) => [label, kind]), look.text, span.log, this.inLayers()]);
    if (wanted !== this.made) this.make(curves, span, look, wanted);
    this.plot?.batch(() => {
      this.plot?.setData(data, false);
      this.plot?.setScale("x", { min: span.from, max: span.to });
    });
  }

  private make(curves: Curve[], span: Span, look: Look, wanted: string): void {
    this.clear();
    this.made = wanted;
    const options: uPlot.Options = {
      width: this.host.clientWidth,
      height: HEIGHT,
      pxAlign: false,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { size: 5 } },
      scales: {
        x: { time: false, ...(span.log ? { distr: 3 as const, log: 10 as const } : {}) },
        y: { range: (_, low, high) => roomy(low, high) },
      },
      axes: [{ ...axis(look, 26), ...(this.inLayers() ? WHOLE : {}) }, valueAxis(curves, look)],
      series: [{}, ...curves.map((curve) => seriesOf(curve, look))],
      hooks: {
        draw: [(plot) => drawNow(plot, this.store.frame.peek().time, look)],
        setCursor: [(plot) => this.point(plot)],
        ready: [(plot) => this.listen(plot)],
      },
    };
    this.plot = new uPlot(options, [[]], this.host);
  }

  private inLayers(): boolean {
    const source = this.store.source.peek();
    return source.kind === "replay" && source.replay.clock === "layer";
  }

  private point(plot: uPlot): void {
    const left = plot.cursor.left ?? -1;
    this.pointed.value = left < 0 ? null : plot.posToVal(left, "x");
  }

  /** Press, or press and drag: the nearest frame is shown. */
  private listen(plot: uPlot): void {
    const go = (event: PointerEvent): void => {
      if ((event.buttons & 1) === 0 && event.type !== "pointerdown") return;
      const left = event.clientX - plot.over.getBoundingClientRect().left;
      const index = nearestIndex(this.store.track.peek().times, plot.posToVal(left, "x"));
      if (index >= 0) this.store.show(index);
    };
    plot.over.addEventListener("pointerdown", go);
    plot.over.addEventListener("pointermove", go);
  }

  /** False when there is nothing yet to fit: the place was hidden until now. */
  fit(): boolean {
    const { clientWidth } = this.host;
    if (clientWidth > 0) this.plot?.setSize({ width: clientWidth, height: HEIGHT });
    return this.plot !== null;
  }

  clear(): void {
    this.plot?.destroy();
    this.plot = null;
    this.made = "";
  }
}

/** Clusters are counted: their axis has whole numbers only. */
function valueAxis(curves: Curve[], look: Look): uPlot.Axis {
  const counted = curves.some(({ quantity }) => quantity === "clusters");
  return {
    ...axis(look, 46),
    values: (_, splits) => splits.map((value) => (value === null ? "" : shortTick(value))),
    ...(counted ? WHOLE : {}),
  };
}

const WHOLE = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000] };

const DASHES = { measured: [], exact: [2, 3], theory: [8, 5] };

function seriesOf(curve: Curve, look: Look): uPlot.Series {
  const stepped = curve.quantity === "clusters" && curve.kind !== "theory";
  return {
    label: curve.label,
    stroke: colourOf(curve, look),
    width: curve.kind === "exact" ? 2.5 : 1.6,
    dash: DASHES[curve.kind],
    spanGaps: true,
    points: { show: false },
    ...(stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
  };
}

function colourOf(curve: Curve, look: Look): string {
  const palette = curve.kind === "theory" ? look.theory : look.measured;
  return palette[curve.order % palette.length]!;
}

/** A little air above and below; a constant line gets a whole unit of it. */
function roomy(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [0, 1];
  const air = high > low ? 0.06 * (high - low) : Math.max(0.5, 0.05 * Math.abs(high));
  return [low - air, high + air];
}

function shortTick(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e5 || size < 1e-3) ? value.toExponential(0) : String(Number(value.toPrecision(5)));
}

function drawNow(plot: uPlot, time: number, look: Look): void {
  const x = plot.valToPos(time, "x", true);
  const { left, top, width, height } = plot.bbox;
  if (!(x >= left - 1 && x <= left + width + 1)) return;
  const pen = plot.ctx;
  pen.save();
  pen.strokeStyle = look.now;
  pen.lineWidth = uPlot.pxRatio;
  pen.setLineDash([]);
  pen.beginPath();
  pen.moveTo(x, top);
  pen.lineTo(x, top + height);
  pen.stroke();
  pen.restore();
}

/** The lines by name, with their values at the pointer, or at the shown time. */
function Key({ store, curves, time }: { store: Store; curves: Curve[]; time: number | null }) {
  const look = lookOf(store.dark.value);
  const at = time ?? store.frame.peek().time;
  return (
    <ul class="tfc-key">
      {curves.map((curve) => (
        <li key={`${curve.kind}${curve.label}`}>
          <svg width="22" height="8" aria-hidden="true">
            <line x1="0" y1="4" x2="22" y2="4" stroke={colourOf(curve, look)} stroke-width="2" stroke-dasharray={DASHES[curve.kind].join(" ")} />
          </svg>
          <span>
            {curve.label}
            {curve.source !== "" && <cite> {curve.source}</cite>}
            {curve.note !== "" && <small>{curve.note}</small>}
          </span>
          <output>{valueText(curve.line.values[nearestIndex(curve.line.times, at)])}</output>
        </li>
      ))}
    </ul>
  );
}
