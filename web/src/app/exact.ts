// "Compute exactly": the engine's float64 run of the same settings, streamed over a WebSocket.
import type { PackedArray } from "../replay/types.ts";
import { framesOf } from "../replay/unpack.ts";
import { spaceOf, stepOf, tokenCount } from "../spec/size.ts";
import type { ModelSpec, Spec } from "../spec/types.ts";
import type { Exact, Frame, Store } from "./contract.ts";
import { emptyTrack } from "./history.ts";

export interface ExactClient {
  start(): void;
  cancel(): void; // the server says when it has stopped
  drop(): void; // nobody wants the run any more: closing frees it on the server too
}

/** What the server says; see tokenflock/web for the other side. */
type Message =
  | { type: "hello"; limits: Record<string, number> }
  | { type: "queued"; ahead: number }
  | { type: "compiling" }
  | { type: "frames"; times: number[]; points: PackedArray; radii?: PackedArray; series: Record<string, (number | null)[]>; fraction: number }
  | { type: "done"; outcome: string; advice: string | null; seconds: number }
  | { type: "cancelled" }
  | { type: "error"; message: string }
  | { type: "pong"; id: number };

export interface Request {
  spec: Spec;
  t1: number; // how long the engine's run is
  every: number;
  offset: number; // the page's time when the engine's run begins
}

const MOST_FRAMES = 1000;
const MOST_BYTES = 64e6; // of points kept on the page
const RETRIES = 3;

/**
 * Why the engine cannot go on from the shown tokens of an edited run: it would begin at t = 0, with radii of one.
 * Null where it can, and where the spec still tells the whole run.
 */
export function restartProblem(store: Store): string | null {
  if (!store.edited.value) return null;
  const more = moreThanTokens(store.spec.value.model, store.frame.value);
  return more === null
    ? null
    : `This run was changed on the way, and ${more}, so no run can begin from these tokens alone: restart it first.`;
}

function moreThanTokens({ name, normalisation }: ModelSpec, { time, radii }: Frame): string | null {
  const timed = name === "RescaledSA" || ["sqrt", "mix"].includes(normalisation?.scheme ?? "");
  if (timed && time > 0) return "its force depends on the time";
  return radii?.some((radius) => radius !== 1) ? "its tokens have radii of their own" : null;
}

/** What "Compute exactly" would do now, or why it cannot. */
export function exactNote(store: Store): string {
  const problem = restartProblem(store);
  if (problem !== null) return problem;
  const begins = store.edited.value ? "The engine goes on from these tokens" : "The engine runs the same settings";
  return store.spec.value.model.noise === undefined
    ? `${begins} in double precision; rings show where it puts the tokens.`
    : `${begins} in double precision on another path of the same noise: rings show other places, with the same law.`;
}

/** The settings as the engine needs them; from the tokens shown when these are not the spec's own any more. */
export function requestOf(spec: Spec, frame: Frame, edited: boolean, d: number): Request {
  const offset = edited ? frame.time : 0;
  const step = stepOf(spec);
  const t1 = Math.max(spec.solve.t1 - offset, 20 * step);
  const most = Math.max(2, Math.min(MOST_FRAMES, Math.floor(MOST_BYTES / (frame.points.length * 8))));
  // A whole number of steps, so that live and exact frames fall on the same times.
  const every = step * Math.max(1, Math.ceil(t1 / step / most));
  return { spec: edited ? fromHere(spec, frame, d, t1) : spec, t1, every, offset };
}

/** A spec that starts from these tokens. */
export function fromHere(spec: Spec, frame: Frame, d: number, t1: number = spec.solve.t1): Spec {
  const points: number[][] = [];
  for (let i = 0; i < frame.points.length; i += d) points.push([...frame.points.subarray(i, i + d)]);
  return {
    ...spec,
    tokens: { law: "points", space: spaceOf(spec), d: d as 2 | 3, points },
    solve: { ...spec.solve, t1 },
  };
}

/** One more part of the run, as the page keeps it. */
export function withPart(run: Exact, part: Extract<Message, { type: "frames" }>, offset: number): Exact {
  const times = part.times.map((time) => time + offset);
  const frames = [...run.frames, ...framesOf(times, part.points, part.radii)];
  const column = (name: string) => part.series[name] ?? times.map(() => null);
  const { track } = run;
  return {
    ...run,
    status: "running",
    message: `${Math.round(100 * part.fraction)} % computed, t = ${Number((times.at(-1) ?? 0).toPrecision(4))}`,
    fraction: part.fraction,
    frames,
    track: {
      times: [...track.times, ...times],
      energy: [...track.energy, ...column("energy")],
      clusters: [...track.clusters, ...column("clusters")],
      order: [...track.order, ...column("order_parameter")],
      cosine: [...track.cosine, ...column("mean_cosine")],
    },
  };
}

export function makeExactClient(store: Store): ExactClient {
  let socket: WebSocket | null = null;
  let retries = 0;
  const live = (): boolean => ["queued", "compiling", "running"].includes(store.exact.peek()?.status ?? "");

  function start(): void {
    const spec = store.spec.peek();
    const edited = store.edited.peek();
    const problem = restartProblem(store);
    if (problem !== null) {
      store.message.value = problem;
      return;
    }
    const request = requestOf(spec, store.frame.peek(), edited, store.d.peek());
    retries = 0;
    connect(request);
  }

  function connect(request: Request): void {
    close();
    store.exact.value = { status: "queued", message: "Connecting to the engine", fraction: 0, frames: [], track: emptyTrack() };
    const opened = new WebSocket(new URL("api/exact", location.href.replace(/^http/, "ws").replace(/[?#].*$/, "")));
    socket = opened;
    opened.onopen = () => {
      const { spec, t1, every } = request;
      opened.send(JSON.stringify({ type: "start", spec, t1, every }));
    };
    opened.onmessage = (event) => {
      if (socket === opened) hear(String(event.data), request);
    };
    opened.onclose = () => {
      if (socket === opened) lost(request);
    };
  }

  function hear(text: string, request: Request): void {
    try {
      receive(JSON.parse(text) as Message, request);
    } catch (error) {
      finish("failed", `The engine's answer could not be read: ${String(error instanceof Error ? error.message : error)}`);
    }
  }

  function receive(heard: Message, request: Request): void {
    const run = store.exact.peek();
    if (run === null) return;
    if (heard.type === "queued") {
      const waiting = heard.ahead === 1 ? "one run is ahead" : `${heard.ahead} runs are ahead`;
      update({ status: "queued", message: heard.ahead > 0 ? `Waiting: ${waiting}` : "Waiting for the engine" });
    } else if (heard.type === "compiling") {
      update({ status: "compiling", message: `The engine prepares ${tokenCount(request.spec)} tokens` });
    } else if (heard.type === "frames") {
      store.exact.value = withPart(run, heard, request.offset);
    } else if (heard.type === "done") {
      update({ fraction: 1 });
      finish("done", `Computed in ${heard.seconds.toFixed(1)} s: ${heard.advice || heard.outcome}.`);
    } else if (heard.type === "cancelled") {
      finish("cancelled", "Cancelled");
    } else if (heard.type === "error") {
      finish("failed", heard.message);
    }
  }

  function update(change: Partial<Exact>): void {
    const run = store.exact.peek();
    if (run !== null) store.exact.value = { ...run, ...change };
  }

  function finish(status: Exact["status"], message: string): void {
    update({ status, message });
    close();
  }

  /** The connection broke: before the first frame, try again; later, say so. */
  function lost(request: Request): void {
    socket = null;
    if (!live()) return;
    if (store.exact.peek()?.frames.length === 0 && retries < RETRIES) {
      retries += 1;
      update({ message: `No answer from the engine; trying again (${retries} of ${RETRIES})` });
      setTimeout(() => live() && socket === null && connect(request), 400 * 2 ** retries);
      return;
    }
    update({ status: "failed", message: "The connection to the engine was lost; is `tokenflock play` still running?" });
  }

  function close(): void {
    const old = socket;
    socket = null;
    old?.close();
  }

  function cancel(): void {
    if (!live()) return;
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "cancel" }));
    else finish("cancelled", "Cancelled");
  }

  return { start, cancel, drop: close };
}
