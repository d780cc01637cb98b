// Tokens by three.js: one draw call for the tokens, one for the trails, one for the rings of the exact run.
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DynamicDrawUsage,
  LineSegments,
  Points,
  Scene,
  ShaderMaterial,
  WebGLRenderer,
} from "three";
import { isFlat } from "./geometry.ts";
import type { TokenLayer, TokenPicture, Trails } from "./layer.ts";
import { backToFront } from "./order.ts";
import type { Colour } from "./palette.ts";
import { DISC_FRAGMENT, POINT_VERTEX, RING_FRAGMENT, TRAIL_FRAGMENT, TRAIL_VERTEX } from "./shaders.ts";
import { DISTANCE, type Viewpoint } from "./viewpoint.ts";

const GHOST_GROWTH = 1.35; // a ring stands clear of the token it should coincide with

/** Null where the browser has no WebGL2. */
export function makeGlLayer(lost: () => void, restored: () => void): TokenLayer | null {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("webgl2", { alpha: true, antialias: true, powerPreference: "high-performance" });
  if (context === null) return null;
  try {
    return new GlLayer(canvas, context, lost, restored);
  } catch {
    return null;
  }
}

class GlLayer implements TokenLayer {
  readonly kind = "webgl2";
  readonly canvas: HTMLCanvasElement;
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly discs = pointCloud(DISC_FRAGMENT);
  private readonly rings = pointCloud(RING_FRAGMENT);
  private readonly trails = trailLines();
  private readonly listeners = new AbortController();
  private ratio = 1;

  constructor(canvas: HTMLCanvasElement, context: WebGL2RenderingContext, lost: () => void, restored: () => void) {
    this.canvas = canvas;
    this.renderer = new WebGLRenderer({ canvas, context, alpha: true, antialias: true });
    this.renderer.setClearColor(0x000000, 0);
    this.renderer.sortObjects = false; // trails, then tokens, then rings
    this.scene.add(this.trails, this.discs, this.rings);
    const { signal } = this.listeners;
    canvas.addEventListener("webglcontextlost", (event) => (event.preventDefault(), lost()), { signal });
    canvas.addEventListener("webglcontextrestored", restored, { signal });
  }

  resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(width, height, false);
  }

  draw(picture: TokenPicture, view: Viewpoint): void {
    const { world, colours, count } = picture;
    const order = backToFront(world, count, view);
    fillSorted(this.discs.geometry, order, world, colours);
    this.setUniforms(this.discs.material, picture, view, 1);
    this.rings.visible = picture.ghosts !== null;
    if (picture.ghosts !== null) {
      const ghosts = picture.ghosts.length / 3;
      fillSorted(this.rings.geometry, backToFront(picture.ghosts, ghosts, view), picture.ghosts, null);
      this.setUniforms(this.rings.material, picture, view, GHOST_GROWTH);
    }
    this.trails.visible = picture.trails !== null;
    if (picture.trails !== null) fillTrails(this.trails.geometry, picture.trails);
    this.trails.material.uniforms["flatScene"]!.value = isFlat(view.stage) ? 1 : 0;
    this.renderer.render(this.scene, view.camera);
  }

  private setUniforms(material: ShaderMaterial, picture: TokenPicture, view: Viewpoint, growth: number): void {
    const { uniforms } = material;
    uniforms["radius"]!.value = picture.radius * this.ratio * growth;
    uniforms["flatScene"]!.value = isFlat(view.stage) ? 1 : 0;
    uniforms["opacity"]!.value = picture.opacity;
    setColour(uniforms["background"]!.value, picture.background);
    setColour(uniforms["rim"]!.value, picture.ink);
  }

  dispose(): void {
    this.listeners.abort();
    for (const part of [this.discs, this.rings, this.trails]) {
      part.geometry.dispose();
      part.material.dispose();
    }
    this.renderer.dispose();
    // Browsers keep few contexts alive: a view that is gone gives its own back.
    if (!this.renderer.getContext().isContextLost()) this.renderer.forceContextLoss();
    this.canvas.remove();
  }
}

/** The shaders write sRGB themselves, so the numbers go in unconverted. */
function setColour(target: Color, colour: Colour): void {
  target.r = colour[0];
  target.g = colour[1];
  target.b = colour[2];
}

function pointCloud(fragmentShader: string): Points<BufferGeometry, ShaderMaterial> {
  const material = new ShaderMaterial({
    vertexShader: POINT_VERTEX,
    fragmentShader,
    transparent: true,
    depthTest: false,
    depthWrite: false,
    uniforms: {
      radius: { value: 4 },
      distance0: { value: DISTANCE },
      flatScene: { value: 0 },
      opacity: { value: 1 },
      background: { value: new Color() },
      rim: { value: new Color() },
    },
  });
  const points = new Points(new BufferGeometry(), material);
  points.frustumCulled = false;
  return points;
}

function trailLines(): LineSegments<BufferGeometry, ShaderMaterial> {
  const material = new ShaderMaterial({
    vertexShader: TRAIL_VERTEX,
    fragmentShader: TRAIL_FRAGMENT,
    transparent: true,
    depthTest: false,
    depthWrite: false,
    uniforms: { flatScene: { value: 0 } },
  });
  const lines = new LineSegments(new BufferGeometry(), material);
  lines.frustumCulled = false;
  return lines;
}

/** The array behind an attribute, made anew when the number of tokens has changed. */
function storage(geometry: BufferGeometry, name: string, itemSize: number, count: number): Float32Array {
  let attribute = geometry.getAttribute(name) as BufferAttribute | undefined;
  if (attribute === undefined || attribute.count !== count) {
    geometry.dispose();
    attribute = new BufferAttribute(new Float32Array(itemSize * count), itemSize);
    attribute.setUsage(DynamicDrawUsage);
    geometry.setAttribute(name, attribute);
  }
  attribute.needsUpdate = true;
  return attribute.array as Float32Array;
}

function fillSorted(
  geometry: BufferGeometry,
  order: Uint32Array,
  world: Float32Array,
  colours: Float32Array | null,
): void {
  const places = storage(geometry, "position", 3, order.length);
  const tints = storage(geometry, "colour", 3, order.length);
  order.forEach((token, rank) => {
    for (let axis = 0; axis < 3; axis += 1) {
      places[3 * rank + axis] = world[3 * token + axis]!;
      if (colours !== null) tints[3 * rank + axis] = colours[3 * token + axis]!;
    }
  });
}

function fillTrails(geometry: BufferGeometry, trails: Trails): void {
  const vertices = trails.ages.length;
  storage(geometry, "position", 3, vertices).set(trails.ends);
  storage(geometry, "colour", 3, vertices).set(trails.colours);
  storage(geometry, "age", 1, vertices).set(trails.ages);
}
