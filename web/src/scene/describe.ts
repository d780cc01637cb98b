// The scene in one sentence, for those who hear the page.

export interface Described {
  title: string;
  stage: "sphere" | "circle" | "box" | "plane";
  count: number;
  time: number;
  clock: "time" | "layer";
  clusters: number;
  largest: number;
}

const PLACES = { sphere: "on the sphere", circle: "on the circle", box: "in space", plane: "in the plane" };

export function describeScene(scene: Described): string {
  const { title, stage, count, clusters, largest } = scene;
  const when = scene.clock === "layer" ? `layer ${scene.time}` : `time ${scene.time.toPrecision(3)}`;
  const groups = clusters === 1 ? "1 cluster" : `${clusters} clusters, the largest of ${largest} tokens`;
  return `${title}: ${count} tokens ${PLACES[stage]} at ${when}, ${groups}.`;
}
