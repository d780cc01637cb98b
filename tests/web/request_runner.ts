// What the page would send to the engine for every preset: from its start, and from where it was dragged to.
import { requestOf } from "../../web/src/app/exact.ts";
import { startTokens } from "../../web/src/physics/start.ts";
import { PRESETS } from "../../web/src/presets/index.ts";
import { dimension } from "../../web/src/spec/size.ts";

const requests: Record<string, unknown> = {};
for (const { id, spec } of PRESETS) {
  const frame = startTokens(spec);
  for (const edited of [false, true]) {
    const { spec: sent, t1, every } = requestOf(spec, frame, edited, dimension(spec));
    requests[edited ? `${id}, dragged` : id] = { type: "start", spec: sent, t1, every };
  }
}
console.log(JSON.stringify(requests));
