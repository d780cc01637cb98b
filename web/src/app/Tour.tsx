// The card of the tour. It takes the place of the sentence under the header, so it hides nothing.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { findPreset } from "../presets/index.ts";
import type { Store } from "./contract.ts";
import { Icon } from "./icons.tsx";
import { choosePreset } from "./opening.ts";
import { type Glance, type Since, sinceWhen, TOUR } from "./tour.ts";
import type { Ui } from "./ui.ts";

function glanceAt(store: Store, since: Since): Glance {
  return {
    spec: store.spec.value,
    time: store.frame.value.time,
    ran: store.frame.value.time - since.time,
    clusters: store.measured.value.clusters,
    edited: store.edited.value,
  };
}

interface Props {
  store: Store;
  ui: Ui;
  index: number;
}

/** Every step begins anew: what the one before has seen does not count. */
export function Tour(props: Props) {
  return <Step key={props.index} {...props} />;
}

function Step({ store, ui, index }: Props) {
  const step = TOUR[index]!;
  const heading = useRef<HTMLHeadingElement>(null);
  const begin = useSignal<Glance | null>(null);
  const finished = useSignal(false);
  const since = useRef<Since | null>(null);
  const look = (): Glance => {
    since.current = sinceWhen(since.current, store.spec.value, store.frame.value.time);
    return glanceAt(store, since.current);
  };
  useEffect(() => {
    const preset = findPreset(step.preset);
    if (preset !== undefined) choosePreset(store, preset, false);
    begin.value = look();
    heading.current?.focus({ preventScroll: false });
  }, []);
  // Once done it stays done, even when the run goes on.
  const done = finished.value || (begin.value !== null && step.done(look(), begin.value));
  useEffect(() => {
    if (done) finished.value = true;
  }, [done]);
  const last = index === TOUR.length - 1;
  return (
    <section class="tf-says tf-tour" aria-label={`Tour, step ${index + 1} of ${TOUR.length}`} data-testid="tour-card">
      <h2 ref={heading} tabIndex={-1}>
        <small>
          {index + 1} of {TOUR.length}
        </small>{" "}
        {step.title}
      </h2>
      <p>{step.text}</p>
      <p class="tf-action" data-done={done} data-testid="tour-action" role="status">
        {done ? <Icon name="tick" /> : <span class="tf-todo" aria-hidden="true" />}
        <span>{done ? `Done. ${step.praise}` : `Try: ${step.action}`}</span>
      </p>
      <div class="tf-says-actions">
        {index > 0 && (
          <button type="button" data-testid="tour-back" onClick={() => (ui.tour.value = index - 1)}>
            Back
          </button>
        )}
        <button
          type="button"
          class={done ? "tf-primary" : ""}
          data-testid="tour-next"
          onClick={() => (ui.tour.value = last ? null : index + 1)}
        >
          {last ? "Finish" : "Next"}
        </button>
        <button type="button" class="tf-plain" data-testid="tour-leave" onClick={() => (ui.tour.value = null)}>
          Leave the tour
        </button>
      </div>
    </section>
  );
}
