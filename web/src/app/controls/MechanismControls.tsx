// What attention does with what it hears, and what else moves a token: V, a perceptron, noise, layer norm.
import { RELU_PERCEPTRON } from "../../presets/mechanisms.ts";
import { LIMITS } from "../../spec/bounds.ts";
import { type ValuesKind, withNoise, withNormalisation, withPerceptron, withValues } from "../../spec/edit.ts";
import type { NormalisationSpec, PerceptronSpec, Spec } from "../../spec/types.ts";
import type { Store } from "../contract.ts";
import { ChoiceField, NumberField, SliderField, ToggleField } from "../fields.tsx";
import { edit } from "./edit.ts";
import { unavailable } from "./explain.ts";

const SCHEMES: readonly (readonly [NormalisationSpec["scheme"], string])[] = [
  ["post", "post-LN: on the sphere"],
  ["pre", "pre-LN: radii grow"],
  ["peri", "peri-LN"],
  ["mix", "mix-LN: pre, then post"],
  ["ngpt", "nGPT"],
  ["sqrt", "sqrt scaling"],
];

interface Props {
  store: Store;
  spec: Spec;
}

export function MechanismControls({ store }: { store: Store }) {
  const spec = store.spec.value;
  return (
    <>
      <Values store={store} spec={spec} />
      <Perceptron store={store} spec={spec} />
      <Noise store={store} spec={spec} />
      <Normalisation store={store} spec={spec} />
    </>
  );
}

/** "given" is a V that these controls cannot make: a run from elsewhere brought it. */
function valuesKind(spec: Spec): ValuesKind | "given" {
  const V = spec.model.weights?.V ?? 1;
  if (typeof V === "number") return V === 1 ? "identity" : V === -1 ? "minus" : "given";
  if (!Array.isArray(V)) return "random";
  return V.every((row, i) => row.every((entry, j) => i === j || entry === 0)) ? "diagonal" : "given";
}

function Values({ store, spec }: Props) {
  const kind = valuesKind(spec);
  const why = unavailable(spec, "random");
  const options: (readonly [ValuesKind | "given", string])[] = [
    ...(kind === "given" ? [["given", "given with the run"] as const] : []),
    ["identity", "I: attract"],
    ["minus", "-I: repel"],
    ["diagonal", "diagonal"],
    ...(why === null ? [["random", "random"] as const] : []),
  ];
  return (
    <>
      <ChoiceField
        label="Values V"
        test="values"
        help={`What a token gets from those it hears. ${why ?? ""}`}
        value={kind}
        options={options}
        change={(chosen) => chosen !== "given" && edit(store, (now) => withValues(now, chosen))}
      />
      {kind === "diagonal" && <Diagonal store={store} spec={spec} />}
      {kind === "random" && <RandomValues store={store} spec={spec} />}
    </>
  );
}

function Diagonal({ store, spec }: Props) {
  const V = spec.model.weights?.V;
  if (!Array.isArray(V)) return null;
  const entries = V.map((row, k) => row[k] ?? 0);
  return (
    <div class="tf-triple" role="group" aria-label="Diagonal of V">
      {entries.map((entry, k) => (
        <NumberField
          key={k}
          label={`V${k + 1}${k + 1}`}
          test={`diagonal-${k + 1}`}
          help="Large entries attract along their axis, negative ones repel."
          value={entry}
          {...LIMITS.value}
          step={0.1}
          change={(next) =>
            edit(store, (now) => withValues(now, "diagonal", { diagonal: entries.with(k, next) }))
          }
        />
      ))}
    </div>
  );
}

function RandomValues({ store, spec }: Props) {
  const V = spec.model.weights?.V;
  const seed = spec.model.weights?.seed ?? 0;
  if (typeof V !== "object" || Array.isArray(V)) return null;
  const put = (part: { law?: typeof V.law; scale?: number; seed?: number }): void =>
    edit(store, (now) => withValues(now, "random", { law: V.law, scale: V.scale, seed, ...part }));
  return (
    <>
      <ChoiceField
        label="Law of V"
        test="values-law"
        help="Ginibre: all entries independent. GOE and Wigner: symmetric."
        value={V.law}
        options={[
          ["Ginibre", "Ginibre"],
          ["GOE", "GOE"],
          ["Wigner", "Wigner"],
        ]}
        change={(law) => put({ law })}
      />
      <NumberField label="Seed of V" test="values-seed" help="Another seed draws another matrix." value={seed} {...LIMITS.seed} step={1} whole change={(next) => put({ seed: next })} />
      <NumberField label="Scale of V" test="values-scale" help="Size of the entries." value={V.scale} {...LIMITS.lawScale} step={0.1} change={(scale) => put({ scale })} />
    </>
  );
}


function Perceptron({ store, spec }: Props) {
  const why = unavailable(spec, "plus");
  const { plus } = spec.model;
  if (why !== null) return <p class="tf-note">{why}</p>;
  const put = (next: PerceptronSpec | null): void => edit(store, (now) => withPerceptron(now, next));
  return (
    <>
      <ToggleField
        label="Perceptron"
        test="perceptron"
        help="A small random network pushes every token by itself, wherever the others are."
        value={plus !== undefined}
        change={(on) => put(on ? RELU_PERCEPTRON : null)}
      />
      {plus !== undefined && (
        <>
          <SliderField label="Strength" test="perceptron-scale" help="Weight of the perceptron against attention." value={plus.scale} min={0} max={10} change={(scale) => put({ ...plus, scale })} />
          <NumberField label="Its seed" test="perceptron-seed" help="Another seed draws another network." value={plus.seed} {...LIMITS.seed} step={1} whole change={(seed) => put({ ...plus, seed })} />
          <ToggleField label="As a gradient" test="perceptron-gradient" help="On: it climbs a landscape of its own, so total energy can only rise. Off: any field." value={plus.gradient} change={(gradient) => put({ ...plus, gradient })} />
        </>
      )}
    </>
  );
}

function Noise({ store, spec }: Props) {
  if (unavailable(spec, "noise") !== null) return null;
  return (
    <SliderField
      label="Noise temperature"
      test="noise"
      help="Brownian motion on the sphere, independent for every token. 0 is no noise."
      value={spec.model.noise?.temperature ?? 0}
      min={0}
      max={2}
      change={(temperature) => edit(store, (now) => withNoise(now, temperature === 0 ? null : temperature))}
    />
  );
}

function Normalisation({ store, spec }: Props) {
  const why = unavailable(spec, "normalisation");
  if (why !== null) return null;
  const scheme = spec.model.normalisation ?? { scheme: "post" as const };
  const put = (next: NormalisationSpec): void =>
    edit(store, (now) => withNormalisation(now, next.scheme === "post" ? null : next));
  return (
    <>
      <ChoiceField label="Layer norm" test="normalisation" help="Where the network normalises (2510.22026): it changes the clock of every token." value={scheme.scheme} options={SCHEMES} change={(chosen) => put({ scheme: chosen })} />
      {scheme.scheme === "mix" && (
        <NumberField label="τ, switching time" test="tau" help="Pre-LN before this time, post-LN after." value={scheme.tau ?? LIMITS.tau.default} {...LIMITS.tau} change={(tau) => put({ scheme: "mix", tau })} />
      )}
      {scheme.scheme === "ngpt" && (
        <NumberField label="α" test="alpha" help="Step of nGPT towards what attention says." value={scheme.alpha ?? LIMITS.alpha.default} {...LIMITS.alpha} step={0.05} change={(alpha) => put({ scheme: "ngpt", alpha })} />
      )}
    </>
  );
}
