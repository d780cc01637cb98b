// Where the scene is seen from: one perspective camera for every stage and for both ways of drawing.
import { MOUSE, Matrix4, PerspectiveCamera, TOUCH, Vector3 } from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import type { Camera } from "../app/contract.ts";
import { isFlat, type Stage } from "./geometry.ts";

/** Distance from which the whole scene is seen; tokens have their nominal size there. */
export const DISTANCE = 5;

// Radius, in scene units, of the disc that just fits into the view.
const FITS: Record<Stage, number> = { sphere: 1.13, circle: 1.57, box: 1.95, plane: 1.1 };
const HOME: Record<Stage, [number, number, number]> = {
  sphere: [0.83, -0.9, 0.5],
  box: [0.6, -1, 0.45],
  circle: [0, 0, 1],
  plane: [0, 0, 1],
};

const UNMOVED = 1e-4; // scene units that do not count as another place

export interface Projected {
  x: number; // CSS pixels from the left
  y: number; // and from the top
  depth: number; // distance along the line of sight
}

export class Viewpoint {
  readonly camera = new PerspectiveCamera(30, 1, 0.01, 100);
  stage: Stage = "sphere";
  width = 1;
  height = 1;
  private controls: OrbitControls | null = null;
  private side: Vector3 | null = null;
  private readonly matrix = new Matrix4();
  private readonly element: HTMLElement;
  private readonly changed: () => void;

  constructor(element: HTMLElement, changed: () => void) {
    this.element = element;
    this.changed = changed;
  }

  /** Orbiting a solid, or sliding over the plane; the circle only zooms. A sphere may be seen from a side of choice. */
  enter(stage: Stage, side: Vector3 | null = null): void {
    this.stage = stage;
    this.side = side;
    this.controls?.dispose();
    this.camera.up.set(0, isFlat(stage) ? 1 : 0, isFlat(stage) ? 0 : 1);
    this.camera.position.copy(this.home);
    // The controls read `up` once, when they are made.
    const controls = new OrbitControls(this.camera, this.element);
    controls.enableRotate = !isFlat(stage);
    controls.enablePan = stage === "plane";
    controls.minDistance = isFlat(stage) ? 0.3 : 1.8;
    controls.maxDistance = 4 * DISTANCE;
    controls.rotateSpeed = 0.8;
    if (stage === "plane") {
      controls.mouseButtons = { LEFT: MOUSE.PAN, MIDDLE: MOUSE.DOLLY, RIGHT: MOUSE.PAN };
      controls.touches = { ONE: TOUCH.PAN, TWO: TOUCH.DOLLY_PAN };
    }
    controls.addEventListener("change", this.changed);
    controls.update();
    this.controls = controls;
    this.fit();
    this.changed();
  }

  private get home(): Vector3 {
    const direction = this.stage === "sphere" && this.side !== null ? this.side : new Vector3(...HOME[this.stage]);
    return direction.clone().setLength(DISTANCE);
  }

  /** Where the stage is seen from; null where nobody has moved the view. */
  get pose(): Camera | null {
    const { position } = this.camera;
    if (position.distanceTo(this.home) < UNMOVED && this.target.length() < UNMOVED) return null;
    const rounded = (place: Vector3): number[] => place.toArray().map((value) => Number(value.toFixed(5)));
    return { stage: this.stage, position: rounded(position), target: rounded(this.target) };
  }

  /** See this stage from there; a pose on another stage, or none, means from home. */
  look(pose: Camera | null): void {
    const known = pose?.stage === this.stage ? pose : null;
    const position = known === null ? this.home : new Vector3().fromArray(known.position);
    const target = new Vector3().fromArray(known?.target ?? [0, 0, 0]);
    const away = position.distanceTo(this.camera.position) + target.distanceTo(this.target);
    if (away < UNMOVED || position.distanceTo(target) < UNMOVED) return;
    this.camera.position.copy(position);
    this.target.copy(target);
    this.controls?.update();
  }

  /** Unit vectors to the right and up on the screen, in scene coordinates. */
  get axes(): { right: Vector3; up: Vector3 } {
    const [right, up] = [new Vector3(), new Vector3()];
    this.camera.matrixWorld.extractBasis(right, up, new Vector3());
    return { right, up };
  }

  resize(width: number, height: number): void {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    this.fit();
  }

  private fit(): void {
    const aspect = this.width / this.height;
    const half = FITS[this.stage] / DISTANCE / Math.min(1, aspect);
    this.camera.aspect = aspect;
    this.camera.fov = (2 * Math.atan(half) * 180) / Math.PI;
    this.camera.updateProjectionMatrix();
    this.refresh();
  }

  /** Bring the matrices up to date; call before a series of projections. */
  refresh(): void {
    this.camera.updateMatrixWorld();
    this.matrix.multiplyMatrices(this.camera.projectionMatrix, this.camera.matrixWorldInverse);
  }

  project(x: number, y: number, z: number): Projected {
    const e = this.matrix.elements;
    const w = e[3]! * x + e[7]! * y + e[11]! * z + e[15]!;
    const clipX = (e[0]! * x + e[4]! * y + e[8]! * z + e[12]!) / w;
    const clipY = (e[1]! * x + e[5]! * y + e[9]! * z + e[13]!) / w;
    return { x: ((clipX + 1) / 2) * this.width, y: ((1 - clipY) / 2) * this.height, depth: w };
  }

  /** CSS pixels of one scene unit at the centre of the view. */
  get unit(): number {
    const half = Math.tan((this.camera.fov * Math.PI) / 360);
    return this.height / 2 / (half * this.camera.position.distanceTo(this.target));
  }

  get target(): Vector3 {
    return this.controls?.target ?? new Vector3();
  }

  /** The line of sight through a pixel, in scene coordinates. */
  ray(x: number, y: number): { origin: Vector3; direction: Vector3 } {
    const far = new Vector3((2 * x) / this.width - 1, 1 - (2 * y) / this.height, 0.5).unproject(this.camera);
    const origin = this.camera.position.clone();
    return { origin, direction: far.sub(origin).normalize() };
  }

  /** A token is being dragged: the view stays. */
  freeze(frozen: boolean): void {
    if (this.controls !== null) this.controls.enabled = !frozen;
  }

  turn(azimuth: number, polar: number): void {
    if (this.stage === "plane") this.slide(azimuth, polar);
    if (isFlat(this.stage) || this.controls === null) return;
    const arm = this.camera.position.clone().sub(this.target);
    const length = arm.length();
    const angle = Math.atan2(arm.y, arm.x) + azimuth;
    const tilt = Math.min(Math.PI - 0.01, Math.max(0.01, Math.acos(arm.z / length) + polar));
    arm.set(Math.sin(tilt) * Math.cos(angle), Math.sin(tilt) * Math.sin(angle), Math.cos(tilt)).multiplyScalar(length);
    this.camera.position.copy(this.target).add(arm);
    this.controls.update();
  }

  private slide(right: number, up: number): void {
    const share = this.camera.position.z / DISTANCE;
    const move = new Vector3(-right * share, -up * share, 0);
    this.target.add(move);
    this.camera.position.add(move);
    this.controls?.update();
  }

  zoom(factor: number): void {
    const arm = this.camera.position.clone().sub(this.target).multiplyScalar(1 / factor);
    this.camera.position.copy(this.target).add(arm);
    this.controls?.update();
  }

  reset(): void {
    this.enter(this.stage, this.side);
  }

  dispose(): void {
    this.controls?.dispose();
  }
}
