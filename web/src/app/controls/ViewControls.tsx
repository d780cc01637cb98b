// What is drawn, and with what it is computed.
import type { Backend, Colouring, Store } from "../contract.ts";
import { ChoiceField } from "../fields.tsx";
import { short } from "../words.ts";

const COLOURINGS: (readonly [Colouring, string])[] = [
  ["cluster", "cluster"],
  ["token", "position in the sequence"],
  ["attention", "attention of a chosen token"],
];

export function ColourControl({ store }: { store: Store }) {
  const known = store.known.value;
  return (
    <ChoiceField
      label="Colour by"
      test="colouring"
      help={typeof known === "string" ? `No attention to show: ${known}` : "Click a token to choose it; its attention shows whom it listens to."}
      value={store.colouring.value}
      options={COLOURINGS}
      change={(colouring) => (store.colouring.value = colouring)}
    />
  );
}

export function DrawingControls({ store }: { store: Store }) {
  return (
    <>
      <ChoiceField
        label="Compute with"
        test="backend"
        help="WebGL2 pays for many tokens; plain JavaScript works everywhere, in double precision."
        value={store.wantedBackend.value}
        options={
          [
            ["auto", "what is faster"],
            ["webgl2", "WebGL2"],
            ["js", "JavaScript"],
          ] as (readonly [Backend | "auto", string])[]
        }
        change={(backend) => (store.wantedBackend.value = backend)}
      />
      <Speedometer store={store} />
    </>
  );
}

function Speedometer({ store }: { store: Store }) {
  const backend = store.backend.value === "webgl2" ? "WebGL2, single precision" : "JavaScript, double precision";
  const moving = store.playing.value;
  return (
    <p class="tf-note" data-testid="speedometer">
      Now: {backend}
      {moving && `; ${Math.round(store.fps.value)} frames per second, ${short(store.pace.value, 3)} steps each`}
    </p>
  );
}
