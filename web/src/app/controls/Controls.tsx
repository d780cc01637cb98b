// All settings, from what matters most to what one rarely touches.
import type { ComponentChildren } from "preact";
import type { Store } from "../contract.ts";
import { MechanismControls } from "./MechanismControls.tsx";
import { ModelControls } from "./ModelControls.tsx";
import { StartControls } from "./StartControls.tsx";
import { StepControls } from "./StepControls.tsx";
import { ColourControl, DrawingControls } from "./ViewControls.tsx";

export function Controls({ store }: { store: Store }) {
  if (store.source.value.kind === "replay") {
    return (
      <div class="tf-settings">
        <ColourControl store={store} />
        <p class="tf-note">This was computed before, so its model and start are fixed. Go back to the live run to change them.</p>
      </div>
    );
  }
  return (
    <div class="tf-settings">
      <ModelControls store={store} />
      <ColourControl store={store} />
      <Fold title="Start" test="fold-start" open>
        <StartControls store={store} />
      </Fold>
      <Fold title="Values, perceptron, noise" test="fold-mechanism" open>
        <MechanismControls store={store} />
      </Fold>
      <Fold title="Advanced: steps and drawing" test="fold-advanced">
        <StepControls store={store} />
        <DrawingControls store={store} />
      </Fold>
    </div>
  );
}

interface FoldProps {
  title: string;
  test: string;
  open?: boolean;
  children: ComponentChildren;
}

function Fold({ title, test, open = false, children }: FoldProps) {
  return (
    <details open={open} class="tf-fold">
      <summary data-testid={test}>{title}</summary>
      <div class="tf-fold-body">{children}</div>
    </details>
  );
}
