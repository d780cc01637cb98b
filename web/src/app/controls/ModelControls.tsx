// The model, its inverse temperature, and how many tokens there are.
import { LIMITS } from "../../spec/bounds.ts";
import { withBeta, withConvention, withCount, withDimension, withModel, withSeed } from "../../spec/edit.ts";
import { dimension, tokenCount } from "../../spec/size.ts";
import type { ModelName, Spec } from "../../spec/types.ts";
import type { Store } from "../contract.ts";
import { ChoiceField, NumberField, SliderField, ToggleField } from "../fields.tsx";
import { Icon } from "../icons.tsx";
import { edit } from "./edit.ts";

const MODELS: readonly (readonly [ModelName, string])[] = [
  ["SA", "SA: softmax attention"],
  ["USA", "USA: without the softmax sum"],
  ["CausalSA", "Causal: listen to earlier tokens"],
  ["HardmaxFlow", "Hardmax: follow the largest"],
  ["RescaledSA", "Rescaled: no layer norm, R^d"],
];
const SLOWEST_BETA = 0.1;
const FASTEST_BETA = 100;

export function ModelControls({ store }: { store: Store }) {
  const spec = store.spec.value;
  const { name } = spec.model;
  return (
    <>
      <ChoiceField
        label="Model"
        test="model"
        help="Who listens to whom, and how the voices are weighed."
        value={name}
        options={MODELS}
        change={(chosen) => edit(store, (now) => withModel(now, chosen), "model")}
      />
      {name === "USA" && <Convention store={store} spec={spec} />}
      {name === "CausalSA" && <CausalOptions store={store} spec={spec} />}
      {name !== "HardmaxFlow" && <Beta store={store} spec={spec} />}
      <Size store={store} spec={spec} />
    </>
  );
}

interface Props {
  store: Store;
  spec: Spec;
}

function Beta({ store, spec }: Props) {
  const perspective = spec.model.name === "USA" && spec.model.convention !== "metastability";
  return (
    <SliderField
      label="β, inverse temperature"
      test="beta"
      help="Large: every token hears only its nearest neighbours. Small: it hears the average of all."
      value={spec.model.beta ?? LIMITS.beta.default}
      min={SLOWEST_BETA}
      max={perspective ? LIMITS.perspectiveBeta.max : FASTEST_BETA}
      logarithmic
      change={(beta) => edit(store, (now) => withBeta(now, beta))}
    />
  );
}

function Size({ store, spec }: Props) {
  const seed = seedOf(spec);
  return (
    <>
      <SliderField
        label="n, tokens"
        test="n"
        help="How many tokens. A change begins a new run."
        value={tokenCount(spec)}
        min={LIMITS.n.min}
        max={LIMITS.n.max}
        whole
        logarithmic
        onRelease
        step={1}
        change={(n) => edit(store, (now) => withCount(now, n), "n")}
      />
      <ChoiceField
        label="d, dimension"
        test="dimension"
        help="2: a circle or a plane. 3: a sphere or space. A change begins a new run."
        value={String(dimension(spec))}
        options={[
          ["2", "2"],
          ["3", "3"],
        ]}
        change={(d) => edit(store, (now) => withDimension(now, d === "2" ? 2 : 3), "n")}
      />
      <NumberField
        label="Seed"
        test="seed"
        help="Another seed draws another start; the same seed gives the same numbers everywhere."
        value={seed}
        min={LIMITS.seed.min}
        max={LIMITS.seed.max}
        step={1}
        whole
        change={(chosen) => edit(store, (now) => withSeed(now, chosen))}
      >
        <button
          type="button"
          data-testid="dice"
          aria-label="Another seed"
          title="Another seed"
          onClick={() => edit(store, (now) => withSeed(now, Math.floor(Math.random() * 10_000)))}
        >
          <Icon name="dice" />
        </button>
      </NumberField>
    </>
  );
}

function seedOf(spec: Spec): number {
  return "seed" in spec.tokens ? spec.tokens.seed : (spec.tokens.perturb_seed ?? spec.solve.seed);
}

function Convention({ store, spec }: Props) {
  return (
    <ChoiceField
      label="Clock of USA"
      test="convention"
      help="The metastability paper counts time in units of e^-β; the perspective paper does not, so its tokens move e^β times faster."
      value={spec.model.convention ?? "perspective"}
      options={[
        ["metastability", "metastability (2410.06833)"],
        ["perspective", "perspective (2312.10794)"],
      ]}
      change={(chosen) => edit(store, (now) => withConvention(now, chosen), "model")}
    />
  );
}

function CausalOptions({ store, spec }: Props) {
  const change = (part: { self_term?: boolean; slope?: number }): void =>
    edit(store, (now) => ({ ...now, model: { ...now.model, ...part } }));
  return (
    <>
      <ToggleField
        label="Tokens hear themselves"
        test="self-term"
        help="Off: every token listens to strictly earlier ones."
        value={spec.model.self_term ?? true}
        change={(self_term) => change({ self_term })}
      />
      <NumberField
        label="ALiBi slope"
        test="slope"
        help="Distant positions count less: weights fall by e^(-slope) per position. 0 is plain causal attention."
        value={spec.model.slope ?? 0}
        min={LIMITS.slope.min}
        max={LIMITS.slope.max}
        step={0.05}
        change={(slope) => change({ slope })}
      />
    </>
  );
}
