// The picture of the tokens, with its own small controls.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Store } from "../app/contract.ts";
import { describeScene } from "./describe.ts";
import { stageOf } from "./geometry.ts";
import { KEYS_HELP } from "./keyboard.ts";
import { Legend } from "./Legend.tsx";
import { register } from "./registry.ts";
import { Scene } from "./scene.ts";
import styles from "./scene.css?inline";
import { MOST_TOKENS_WITH_TRAILS } from "./trails.ts";

const DESCRIBE_EVERY_MS = 1_000;

export function SceneView({ store }: { store: Store }) {
  const host = useRef<HTMLDivElement>(null);
  const scene = useSignal<Scene | null>(null);
  const trails = useSignal(true);
  const hull = useSignal(false);

  useEffect(() => {
    if (host.current === null) return; // taken away before it was shown
    const made = new Scene(host.current, store, { trails, hull });
    const forget = register(store, made);
    scene.value = made;
    return () => {
      scene.value = null;
      forget();
      made.dispose();
    };
  }, [store]);
  useEffect(() => (host.current === null ? undefined : keepDescribed(host.current, store)), [store]);

  const stage = stageOf(store.space.value, store.d.value);
  return (
    <div class="tfs" data-dark={store.dark.value}>
      <style>{styles}</style>
      <div class="tfs-stage" ref={host} tabIndex={0} role="img" aria-description={KEYS_HELP} data-testid="scene" />
      <p class="tfs-keys" aria-hidden="true">
        {KEYS_HELP}
      </p>
      <div class="tfs-tools" role="group" aria-label="View">
        {store.n.value <= MOST_TOKENS_WITH_TRAILS && <Toggle on={trails} text="Trails" help="Show where tokens were" />}
        {stage === "plane" && <Toggle on={hull} text="Hull" help="Show the convex hull of the tokens" />}
        <button type="button" title="Zoom in" aria-label="Zoom in" onClick={() => scene.value?.view.zoom(1.2)}>
          +
        </button>
        <button type="button" title="Zoom out" aria-label="Zoom out" onClick={() => scene.value?.view.zoom(1 / 1.2)}>
          −
        </button>
        <button type="button" title="Reset the view" aria-label="Reset the view" onClick={() => scene.value?.view.reset()}>
          ⟲
        </button>
      </div>
      <Legend store={store} legend={scene.value?.legend.value ?? null} />
    </div>
  );
}

function Toggle({ on, text, help }: { on: Signal<boolean>; text: string; help: string }) {
  return (
    <button type="button" aria-pressed={on.value} title={help} onClick={() => (on.value = !on.value)}>
      {text}
    </button>
  );
}

/** The sentence for screen readers follows the scene, but not faster than it can be heard. */
function keepDescribed(element: HTMLElement, store: Store): () => void {
  const describe = (): void => {
    const source = store.source.peek();
    const { clusters, sizes } = store.measured.peek();
    const text = describeScene({
      title: source.kind === "live" ? modelTitle(store) : source.replay.title,
      stage: stageOf(store.space.peek(), store.d.peek()),
      count: store.n.peek(),
      time: store.frame.peek().time,
      clock: source.kind === "live" ? "time" : source.replay.clock,
      clusters,
      largest: sizes[0] ?? 0,
    });
    if (element.getAttribute("aria-label") !== text) element.setAttribute("aria-label", text);
  };
  describe();
  const clock = setInterval(describe, DESCRIBE_EVERY_MS);
  return () => clearInterval(clock);
}

function modelTitle(store: Store): string {
  const { name, beta } = store.spec.peek().model;
  return beta === undefined ? `Model ${name}` : `Model ${name}, beta ${beta}`;
}
