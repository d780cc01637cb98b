// How time advances.
import { largestStep, LIMITS } from "../../spec/bounds.ts";
import { withMethod, withStep } from "../../spec/edit.ts";
import { stepOf } from "../../spec/size.ts";
import type { Store } from "../contract.ts";
import { ChoiceField, NumberField } from "../fields.tsx";
import { edit, extend } from "./edit.ts";

// Below, nothing moves while one watches; where the model itself is faster, a tenth of its longest step.
const SHORTEST = 1e-4;

export function StepControls({ store }: { store: Store }) {
  const spec = store.spec.value;
  const flow = spec.solve.method === "fixed";
  const most = largestStep(spec);
  return (
    <>
      <ChoiceField
        label="Time"
        test="method"
        help="Flow: continuous time, in small steps. Layers: a network with one update per layer; its clock is another one."
        value={spec.solve.method}
        options={[
          ["fixed", "flow (continuous)"],
          ["layers", "layers (a network)"],
        ]}
        change={(method) => edit(store, (now) => withMethod(now, method))}
      />
      <NumberField
        label={flow ? "dt, step of the flow" : "Step of a layer"}
        test="dt"
        help={flow ? "Smaller is more accurate and slower; this model bounds it." : "Weight of attention in one layer."}
        value={stepOf(spec)}
        min={flow ? Math.min(SHORTEST, most / 10) : SHORTEST}
        max={flow ? most : LIMITS.step.max}
        change={(length) => edit(store, (now) => withStep(now, length), "step")}
      />
      <NumberField
        label="End of the run, t1"
        test="t1"
        help="Play pauses here, and the engine computes up to here. Play again to go on."
        value={spec.solve.t1}
        min={stepOf(spec)}
        max={LIMITS.t1.max}
        change={(t1) => extend(store, t1)}
      />
    </>
  );
}
