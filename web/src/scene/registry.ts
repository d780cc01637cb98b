// Which scene shows which store, for exports. Several views may live on one document.
import type { Store } from "../app/contract.ts";
import type { Scene } from "./scene.ts";

const scenes = new WeakMap<Store, Scene>();

export function register(store: Store, scene: Scene): () => void {
  scenes.set(store, scene);
  return () => {
    if (scenes.get(store) === scene) scenes.delete(store);
  };
}

export function sceneOf(store: Store): Scene {
  const scene = scenes.get(store);
  if (scene === undefined) throw new Error("The scene is not on the page, so there is no picture of it to take.");
  return scene;
}
