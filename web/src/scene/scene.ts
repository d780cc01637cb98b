// The scene: three layers (backdrop, tokens, overlay) drawn again when something they show has changed.
import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { Vector3 } from "three";
import type { Frame, Source, Store } from "../app/contract.ts";
import type { CircleDensity } from "../observe/density.ts";
import { attentionRow, circleDensity } from "../observe/index.ts";
import { unpack } from "../replay/unpack.ts";
import { drawBackdrop } from "./backdrop.ts";
import { ClusterColours } from "./clusterColours.ts";
import { colourTokens, type Legend } from "./colours.ts";
import { drawDensity } from "./density.ts";
import { convexHull, isFlat, isRound, nextExtent, reach, stageOf, tokenRadius, toWorld } from "./geometry.ts";
import { nudged, pressKey } from "./keyboard.ts";
import type { TokenLayer, TokenPicture } from "./layer.ts";
import { drawHull, drawOverlay } from "./overlay.ts";
import { listenToPointer } from "./pointer.ts";
import { themeOf } from "./theme.ts";
import { makeCanvasLayer } from "./tokensCanvas.ts";
import { makeGlLayer } from "./tokensGl.ts";
import { MOST_TOKENS_WITH_TRAILS, TrailKeeper } from "./trails.ts";
import { Viewpoint } from "./viewpoint.ts";

export interface SceneSwitches {
  trails: ReadonlySignal<boolean>;
  hull: ReadonlySignal<boolean>;
}

const LOPSIDED = 0.2; // length of the mean of unit vectors that fill one side
const DENSITY_BINS = 360;
const DENSITY_PAUSE_MS = 80; // between two estimates when there are many tokens
const GIVE_UP_CONTEXT_MS = 3_000;
const LEGEND_PAUSE_MS = 150;
const MOST_SLOTS = 64; // clusters whose colours a link holds

export class Scene {
  readonly legend = signal<Legend | null>(null);
  readonly view: Viewpoint;
  private readonly element: HTMLElement;
  private readonly store: Store;
  private readonly switches: SceneSwitches;
  private readonly backdrop = document.createElement("canvas");
  private readonly overlay = document.createElement("canvas");
  private layer: TokenLayer;
  private readonly hovered = signal<number | null>(null);
  private readonly keeper = new ClusterColours();
  private slots: number[] = [];
  private readonly trails = new TrailKeeper();
  private readonly undo: (() => void)[] = [];
  private world: Float32Array = new Float32Array(0);
  private extent: number | null = null;
  private dragging = false;
  private ratio = 1;
  private requested = 0;
  private posing = false;
  private density: { frame: Frame; made: number; value: CircleDensity } | null = null;
  private legendMade = 0;
  private backdropOf = "";

  constructor(element: HTMLElement, store: Store, switches: SceneSwitches) {
    this.element = element;
    this.store = store;
    this.switches = switches;
    this.view = new Viewpoint(element, () => this.seenAnew());
    this.layer = this.makeLayer();
    element.append(this.backdrop, this.layer.canvas, this.overlay);
    // Before the camera's controls, so that a grip on a token can hold the camera.
    this.undo.push(this.listenToPointer(), this.listenToKeys(), ...this.followStore(), this.followSize());
  }

  private seenAnew(): void {
    const pose = this.view.pose;
    if (JSON.stringify(pose) !== JSON.stringify(this.store.camera.peek())) this.store.camera.value = pose;
    this.request();
  }

  /** Draw at the next frame of the screen. */
  request(): void {
    if (this.requested === 0) this.requested = requestAnimationFrame(() => this.drawRequested());
  }

  private drawRequested(): void {
    this.requested = 0;
    if (!this.posing) this.draw();
  }

  private makeLayer(): TokenLayer {
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const lost = () => (waiting = setTimeout(() => this.useCanvas(), GIVE_UP_CONTEXT_MS));
    const restored = () => (clearTimeout(waiting), this.request());
    this.undo.push(() => clearTimeout(waiting));
    return makeGlLayer(lost, restored) ?? makeCanvasLayer();
  }

  /** The graphics context was lost and did not come back. */
  private useCanvas(): void {
    const broken = this.layer;
    this.layer = makeCanvasLayer();
    broken.canvas.replaceWith(this.layer.canvas);
    broken.dispose();
    this.resize(this.view.width, this.view.height, this.ratio);
  }

  private followStore(): (() => void)[] {
    const { store } = this;
    const stage = effect(() => {
      const next = stageOf(store.space.value, store.d.value);
      this.extent = null;
      this.trails.forget();
      this.keeper.forget();
      const asked = store.camera.peek();
      this.view.enter(next, sideOf(store.source.value));
      this.view.look(asked);
    });
    const camera = effect(() => this.view.look(store.camera.value));
    const slots = effect(() => {
      if (store.slots.value === this.slots) return;
      this.slots = store.slots.value;
      this.keeper.adopt(store.measured.peek().labels, this.slots);
      this.request();
    });
    const picture = effect(() => {
      for (const part of [store.frame, store.measured, store.dark, store.selected, store.colouring]) void part.value;
      for (const part of [store.exactFrame, store.labels, store.source, this.hovered]) void part.value;
      void [this.switches.trails.value, this.switches.hull.value, store.spec.value];
      this.request();
    });
    return [stage, camera, slots, picture];
  }

  private followSize(): () => void {
    const observer = new ResizeObserver(() => this.adoptSize());
    observer.observe(this.element);
    this.adoptSize();
    return () => observer.disconnect();
  }

  private adoptSize(): void {
    if (this.posing) return;
    const { clientWidth, clientHeight } = this.element;
    if (clientWidth > 0 && clientHeight > 0) {
      this.resize(clientWidth, clientHeight, Math.min(2, globalThis.devicePixelRatio || 1));
    }
  }

  private resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    this.view.resize(width, height);
    this.layer.resize(width, height, ratio);
    for (const canvas of [this.backdrop, this.overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.backdropOf = "";
    this.draw();
  }

  private listenToKeys(): () => void {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.element) return;
      const moves = event.shiftKey && event.key.startsWith("Arrow");
      if (!(moves ? this.nudge(event.key) : pressKey(event.key, this.view, this.store))) return;
      event.preventDefault();
      event.stopPropagation();
    };
    // Inside a notebook the wheel scrolls the page until the scene was chosen.
    const wheel = (event: WheelEvent) => {
      const chosen = document.activeElement === this.element || event.ctrlKey;
      if (this.store.options.mode === "notebook" && !chosen) event.stopPropagation();
    };
    this.element.addEventListener("keydown", press);
    this.element.addEventListener("wheel", wheel, { capture: true });
    return () => {
      this.element.removeEventListener("keydown", press);
      this.element.removeEventListener("wheel", wheel, { capture: true });
    };
  }

  /** Move the chosen token along the space, as the arrow points on the screen. */
  private nudge(key: string): true {
    const { store } = this;
    const index = store.selected.peek();
    if (index === null) {
      store.message.value = "Choose a token first: [ and ] go through them.";
      return true;
    }
    const d = store.d.peek();
    const place = new Vector3(...store.frame.peek().points.subarray(d * index, d * (index + 1)));
    const moved = nudged(place, key, this.view.axes, isRound(this.view.stage) ? null : this.scale());
    store.dragToken(index, moved.toArray().slice(0, d));
    store.releaseToken();
    return true;
  }

  private listenToPointer(): () => void {
    const { store } = this;
    return listenToPointer(this.element, this.view, {
      world: () => this.world,
      radius: () => this.radius(),
      canDrag: () => store.source.peek().kind === "live",
      hover: (index) => (this.hovered.value = index),
      choose: (index) => (store.selected.value = store.selected.peek() === index ? null : index),
      drag: (index, place) => {
        this.dragging = true;
        const point = place.multiplyScalar(this.scale()).toArray();
        store.dragToken(index, store.d.peek() === 2 ? point.slice(0, 2) : point);
      },
      release: () => {
        this.dragging = false;
        store.releaseToken();
      },
    });
  }

  private radius(): number {
    return tokenRadius(this.world.length / 3, Math.min(this.view.width, this.view.height));
  }

  private scale(): number {
    return isRound(this.view.stage) ? 1 : (this.extent ?? 1);
  }

  /** Draw everything now, from the store as it is. */
  draw(): void {
    const { store, view } = this;
    const frame = store.frame.peek();
    const d = store.d.peek();
    if (!isRound(view.stage) && !this.dragging) this.extent = nextExtent(this.extent, reach(frame.points));
    this.world = toWorld(frame, d, this.scale());
    this.trails.add(frame.time, this.world);
    view.refresh();
    const theme = themeOf(store.dark.peek());
    const coloured = this.colour(frame);
    this.drawBehind(frame, theme);
    this.layer.draw(this.picture(coloured.colours, theme), view);
    const measured = store.measured.peek();
    const pen = this.pen(this.overlay);
    pen.clearRect(0, 0, view.width, view.height);
    drawOverlay(pen, view, theme, {
      world: this.world,
      count: this.world.length / 3,
      radius: this.radius(),
      clusterOf: measured.labels,
      sizes: measured.sizes,
      texts: store.labels.peek(),
      selected: store.selected.peek(),
      hovered: this.hovered.peek(),
    });
    this.tellLegend(coloured.legend);
    this.tellSlots();
  }

  private colour(frame: Frame): ReturnType<typeof colourTokens> {
    const { store } = this;
    const { labels, sizes } = store.measured.peek();
    const known = store.known.peek();
    return colourTokens({
      count: this.world.length / 3,
      labels,
      sizes,
      colouring: store.colouring.peek(),
      keeper: this.keeper,
      selected: store.selected.peek(),
      attention: typeof known === "string" ? known : (index) => attentionRow(known, frame, index),
      dark: store.dark.peek(),
    });
  }

  private picture(colours: Float32Array, theme: ReturnType<typeof themeOf>): TokenPicture {
    const count = this.world.length / 3;
    const exact = this.store.exactFrame.peek();
    const withTrails = this.switches.trails.peek() && count <= MOST_TOKENS_WITH_TRAILS;
    return {
      count,
      world: this.world,
      colours,
      radius: this.radius(),
      opacity: this.view.stage === "circle" ? 0.85 : 1,
      ghosts: exact === null ? null : toWorld(exact, this.store.d.peek(), this.scale()),
      trails: withTrails ? this.trails.pieces(colours) : null,
      background: theme.background,
      ink: theme.ink,
    };
  }

  /** The sphere and the box stand still while tokens move: they are drawn again only when seen differently. */
  private drawBehind(frame: Frame, theme: ReturnType<typeof themeOf>): void {
    const { view } = this;
    const seen = [view.stage, view.width, view.height, this.ratio, this.scale(), theme.dark, ...view.camera.matrixWorld.elements];
    const sight = isFlat(view.stage) ? "" : seen.join();
    if (sight !== "" && sight === this.backdropOf) return;
    this.backdropOf = sight;
    const pen = this.pen(this.backdrop);
    drawBackdrop(pen, this.view, theme, this.scale());
    if (this.view.stage === "circle") drawDensity(pen, this.view, theme, this.densityOf(frame));
    if (this.view.stage === "plane" && this.switches.hull.peek()) {
      drawHull(pen, this.view, theme, this.world, convexHull(frame.points));
    }
  }

  /** An estimate costs n kernels per bin: with many tokens it is made less often than frames are drawn. */
  private densityOf(frame: Frame): CircleDensity {
    const now = performance.now();
    const { density } = this;
    const many = frame.points.length > 2 * 512;
    const fresh = density?.frame === frame || (many && density !== null && now - density.made < DENSITY_PAUSE_MS);
    if (density !== null && fresh && !this.posing) {
      if (density.frame !== frame) this.request();
      return density.value;
    }
    const value = circleDensity(frame, DENSITY_BINS);
    this.density = { frame, made: now, value };
    return value;
  }

  /** For links, which bring the colours of the larger clusters back. */
  private tellSlots(): void {
    const { labels, sizes } = this.store.measured.peek();
    const clusters = sizes.slice(0, MOST_SLOTS).filter((size) => size > 1).length;
    const slots = this.keeper.ofClusters(labels, clusters);
    if (slots.join() === this.slots.join()) return;
    this.slots = slots;
    this.store.slots.value = slots;
  }

  private tellLegend(legend: Legend): void {
    const now = performance.now();
    const before = this.legend.peek();
    if (before?.kind === legend.kind && now - this.legendMade < LEGEND_PAUSE_MS && this.store.playing.peek()) return;
    this.legendMade = now;
    if (JSON.stringify(before) !== JSON.stringify(legend)) this.legend.value = legend;
  }

  private pen(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const pen = canvas.getContext("2d");
    if (pen === null) throw new Error("This browser gives no 2-D canvas, so nothing can be drawn.");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    return pen;
  }

  /** Take another size for a series of shots, until `rest`. The screen shows it scaled meanwhile. */
  pose(width: number, height: number, ratio: number): void {
    this.posing = true;
    this.resize(width, height, ratio);
  }

  rest(): void {
    this.posing = false;
    this.adoptSize();
  }

  /** Draw now and put the three layers on another canvas, pixel by pixel. */
  paint(pen: CanvasRenderingContext2D): void {
    this.draw();
    for (const layer of [this.backdrop, this.layer.canvas, this.overlay]) pen.drawImage(layer, 0, 0);
  }

  /** The scene on a canvas of its own. */
  shot(): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    canvas.width = this.backdrop.width;
    canvas.height = this.backdrop.height;
    const pen = canvas.getContext("2d");
    if (pen !== null) this.paint(pen);
    return canvas;
  }

  get drawnWith(): TokenLayer["kind"] {
    return this.layer.kind;
  }

  dispose(): void {
    cancelAnimationFrame(this.requested);
    for (const step of this.undo) step();
    this.view.dispose();
    this.layer.dispose();
    this.backdrop.remove();
    this.overlay.remove();
  }
}

/** Tokens projected from many dimensions often fill one side of the sphere: that side is seen. */
function sideOf(source: Source): Vector3 | null {
  if (source.kind === "live" || source.replay.projection === null) return null;
  const [, , d = 3] = source.replay.points.shape;
  const points = unpack(source.replay.points);
  const mean = new Vector3();
  for (let k = 0; k < points.length; k += d) mean.add(new Vector3(points[k], points[k + 1], points[k + 2]));
  const spread = mean.length() / (points.length / d);
  // A little to the side, so that the pole of the graticule is not in the middle.
  return spread > LOPSIDED ? mean.normalize().add(new Vector3(0, 0, 0.3)) : null;
}
