// The state of the page as the part of an address after '#', and back.
//
// #preset=NAME names a preset. #state=z... or #state=p... is base64url of (z: deflated, p: plain) bytes:
// the length of a JSON header as 4 bytes little-endian, the header, then the tokens (and radii) as
// little-endian float64, so that another machine goes on from the same numbers.
import { base64Of, bytesOf } from "../replay/unpack.ts";
import { findPreset } from "../presets/index.ts";
import { stageOf } from "../scene/geometry.ts";
import { LIMITS, validate } from "../spec/bounds.ts";
import { dimension, spaceOf, stepOf, tokenCount } from "../spec/size.ts";
import type { Spec } from "../spec/types.ts";
import type { Camera, Colouring, Frame } from "./contract.ts";

export interface LinkState {
  spec: Spec;
  preset: string | null;
  time: number;
  steps: number;
  edited: boolean;
  colouring: Colouring;
  selected: number | null;
  logTime: boolean;
  speed: number;
  camera: Camera | null;
  slots: number[]; // colours of the clusters, largest first
  frame: Frame | null; // null: the start of the spec, or `steps` steps from it
}

export type Opened = { preset: string } | { state: LinkState };

type Header = Omit<LinkState, "frame"> & { tokens: boolean; radii: boolean };

/** Up to here a link always carries its tokens; above, they are computed again from the seed. */
export const CARRIED = 512;
const LONGEST = 1_500_000; // characters of a link
const LARGEST = 600_000; // bytes behind it, deflated or not
const MOST_STEPS = 1_000_000;
const ON_SPHERE = 1e-6;
const FARTHEST = 100; // scene units: more than the camera goes
const COLOURINGS: Colouring[] = ["cluster", "token", "attention"];

/** Whether the tokens themselves belong into the link. */
export function carriesTokens(steps: number, edited: boolean, n: number): boolean {
  return edited || (steps > 0 && n <= CARRIED);
}

export async function encodeState(state: LinkState): Promise<string> {
  const { frame, ...said } = state;
  const header: Header = { ...said, tokens: frame !== null, radii: frame?.radii != null };
  const parts = [frame?.points, frame?.radii].filter((part) => part != null).map(bytesBehind);
  const plain = join(new TextEncoder().encode(JSON.stringify(header)), parts);
  const small = await deflated(plain);
  const best = small !== null && small.length < plain.length ? { mark: "z", bytes: small } : { mark: "p", bytes: plain };
  return `#state=${best.mark}${urlSafe(base64Of(best.bytes))}`;
}

/** What an address asks for: null when nothing; throws a sentence when it is damaged. */
export async function decodeHash(hash: string): Promise<Opened | null> {
  const text = hash.replace(/^#/, "");
  if (text.startsWith("preset=")) return { preset: text.slice("preset=".length) };
  if (!text.startsWith("state=")) return null;
  return { state: await decodeState(text.slice("state=".length)) };
}

async function decodeState(text: string): Promise<LinkState> {
  if (text.length > LONGEST) throw new Error("it is longer than any link this page makes");
  const mark = text[0];
  if (mark !== "z" && mark !== "p") throw new Error("it was made by another version of the page");
  const { header, rest } = await unfold(mark, text.slice(1)).catch(() => {
    throw new Error("it is damaged, perhaps cut off");
  });
  return readState(header, rest);
}

async function unfold(mark: "z" | "p", text: string): Promise<{ header: unknown; rest: Uint8Array<ArrayBuffer> }> {
  const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
  const plain = mark === "z" ? await inflated(bytes) : bytes;
  const end = 4 + new DataView(plain.buffer).getUint32(0, true);
  if (end > plain.length) throw new Error("shorter than its own header");
  return { header: JSON.parse(new TextDecoder().decode(plain.subarray(4, end))), rest: plain.slice(end) };
}

function readState(given: unknown, rest: Uint8Array<ArrayBuffer>): LinkState {
  const header = given as Header;
  checkSpec(header?.spec);
  const { spec } = header;
  const n = tokenCount(spec);
  const count = (value: unknown, most: number): value is number =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most;
  if (!count(header.steps, MOST_STEPS)) throw new Error(`it asks for more than ${MOST_STEPS} steps`);
  checkTime(header);
  return {
    spec,
    preset: ownPreset(header),
    time: header.time,
    steps: header.steps,
    edited: header.edited === true,
    colouring: COLOURINGS.includes(header.colouring) ? header.colouring : "cluster",
    selected: count(header.selected, n - 1) ? header.selected : null,
    logTime: header.logTime === true,
    speed: header.speed > 0 && header.speed <= 10_000 ? header.speed : 1,
    camera: readCamera(header),
    slots: Array.isArray(header.slots) && header.slots.every((slot) => count(slot, n)) ? header.slots.slice(0, n) : [],
    frame: header.tokens === true ? readFrame(header, rest, n, dimension(spec)) : null,
  };
}

function readFrame(header: Header, rest: Uint8Array<ArrayBuffer>, n: number, d: number): Frame {
  const expected = 8 * n * (d + (header.radii ? 1 : 0));
  if (rest.length !== expected) throw new Error(`it carries ${rest.length} bytes of tokens and needs ${expected}`);
  const numbers = new Float64Array(rest.buffer);
  if (!numbers.every(Number.isFinite)) throw new Error("one of its tokens is not a number");
  const points = numbers.slice(0, n * d);
  if (spaceOf(header.spec) === "sphere" && !onSphere(points, d)) throw new Error("its tokens do not lie on the sphere");
  return { time: header.time, points, radii: header.radii ? numbers.slice(n * d) : null };
}

/** The time is told by the steps, unless their length was changed on the way. */
function checkTime({ spec, time, steps, edited }: Header): void {
  if (!Number.isFinite(time) || time < 0 || time > LIMITS.t1.max) throw new Error("its time is no time of a run");
  const told = steps * stepOf(spec);
  if (edited !== true && Math.abs(time - told) > 1e-6 * (1 + told)) throw new Error("its time is not that of its steps");
}

/** The title and sentence of a preset stand over its own settings only; the end may be another one. */
function ownPreset({ preset, spec }: Header): string | null {
  const known = typeof preset === "string" ? findPreset(preset) : undefined;
  const endless = (one: Spec): string => JSON.stringify({ ...one, solve: { ...one.solve, t1: 0 } });
  return known !== undefined && endless(known.spec) === endless(spec) ? known.id : null;
}

/** Null in links that were made before they held one. */
function readCamera({ camera, spec }: Header): Camera | null {
  const stage = stageOf(spaceOf(spec), dimension(spec));
  const place = (given: unknown): given is number[] =>
    Array.isArray(given) && given.length === 3 && given.every((value) => Math.abs(value) <= FARTHEST);
  if (camera?.stage !== stage || !place(camera.position) || !place(camera.target)) return null;
  return { stage, position: camera.position, target: camera.target };
}

function checkSpec(spec: unknown): asserts spec is Spec {
  let problems: string[];
  try {
    problems = validate(spec as Spec);
  } catch {
    problems = ["its settings are damaged"];
  }
  if (problems[0] !== undefined) throw new Error(problems[0]);
}

function onSphere(points: Float64Array, d: number): boolean {
  for (let i = 0; i < points.length; i += d) {
    if (Math.abs(Math.hypot(...points.subarray(i, i + d)) - 1) > ON_SPHERE) return false;
  }
  return true;
}

function bytesBehind(values: Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function join(header: Uint8Array, parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const size = parts.reduce((sum, part) => sum + part.length, 4 + header.length);
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  let place = 4 + header.length;
  for (const part of parts) {
    bytes.set(part, place);
    place += part.length;
  }
  return bytes;
}

function urlSafe(base64: string): string {
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function deflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array | null> {
  if (typeof CompressionStream === "undefined") return null;
  return drain(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw")));
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return drain(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
}

/** All bytes of a stream; gives up early, so that a small link cannot unfold into a huge one. */
async function drain(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > LARGEST) {
      await reader.cancel();
      throw new Error("more than any link of this page holds");
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(size);
  let place = 0;
  for (const part of parts) {
    bytes.set(part, place);
    place += part.length;
  }
  return bytes;
}
