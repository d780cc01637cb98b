// Where the tokens are at time zero.
import { LIMITS } from "../../spec/bounds.ts";
import { withStart } from "../../spec/edit.ts";
import type { TokensSpec } from "../../spec/types.ts";
import type { Store } from "../contract.ts";
import { ChoiceField, NumberField, SliderField } from "../fields.tsx";
import { edit } from "./edit.ts";
import { grouped, lawsFor, startOf } from "./starts.ts";

export function StartControls({ store }: { store: Store }) {
  const spec = store.spec.value;
  return (
    <>
      <ChoiceField
        label="Law"
        test="start"
        help="How the first positions are drawn. A change begins a new run."
        value={spec.tokens.law}
        options={lawsFor(spec)}
        change={(law) => edit(store, (now) => withStart(now, startOf(now, law)))}
      />
      <LawOptions store={store} tokens={spec.tokens} />
    </>
  );
}

function LawOptions({ store, tokens }: { store: Store; tokens: TokensSpec }) {
  const put = (next: TokensSpec): void => edit(store, (now) => withStart(now, next));
  switch (tokens.law) {
    case "cap":
      return (
        <SliderField
          label="Radius of the cap"
          test="radius"
          help="In radians: tokens start within this angle of one point."
          value={tokens.radius}
          {...LIMITS.radius}
          change={(radius) => put({ ...tokens, radius })}
        />
      );
    case "arcs":
    case "mixture":
      return <Groups store={store} tokens={tokens} />;
    case "equiangular":
      return (
        <SliderField
          label="Cosine between tokens"
          test="correlation"
          help="All pairs start at the same angle; at most d tokens fit."
          value={tokens.correlation}
          min={tokens.n > 1 ? Math.max(LIMITS.correlation.min, -0.99 / (tokens.n - 1)) : LIMITS.correlation.min}
          max={LIMITS.correlation.max}
          change={(correlation) => put({ ...tokens, correlation })}
        />
      );
    case "gaussian":
      return (
        <NumberField
          label="Scale"
          test="scale"
          help="Standard deviation of the coordinates; on the sphere only directions count."
          value={tokens.scale}
          {...LIMITS.gaussianScale}
          change={(scale) => put({ ...tokens, scale })}
        />
      );
    case "box":
      return (
        <NumberField
          label="Half width"
          test="half-width"
          help="Tokens start in a box from -w to w."
          value={tokens.half_width}
          {...LIMITS.halfWidth}
          change={(half_width) => put({ ...tokens, half_width })}
        />
      );
    default:
      return null;
  }
}

function Groups({ store, tokens }: { store: Store; tokens: Extract<TokensSpec, { law: "arcs" | "mixture" }> }) {
  const width = tokens.law === "arcs" ? tokens.width : tokens.radius;
  const limit = tokens.law === "arcs" ? LIMITS.arcWidth : LIMITS.radius;
  return (
    <>
      <NumberField
        label="Groups"
        test="groups"
        help="How many groups the tokens start in."
        value={tokens.centres.length}
        min={LIMITS.clusters.min}
        max={Math.min(LIMITS.clusters.max, 16)}
        step={1}
        whole
        change={(groups) => edit(store, (now) => withStart(now, grouped(now, groups, width)), "n")}
      />
      <NumberField
        label="Width of a group"
        test="group-width"
        help="In radians."
        value={width}
        min={limit.min}
        max={limit.max}
        step={0.05}
        change={(next) =>
          edit(store, (now) => withStart(now, tokens.law === "arcs" ? { ...tokens, width: next } : { ...tokens, radius: next }))
        }
      />
    </>
  );
}
