// Answers the requests of tests/web/test_physics*.py: JSON on standard input, JSON on standard output.
import { readFileSync } from "node:fs";
import type { Frame } from "../../web/src/app/contract.ts";
import {
  attentionMatrix,
  attentionRow,
  circleDensity,
  cosineHistogram,
  measure,
  measureReplay,
} from "../../web/src/observe/index.ts";
import { PRESETS } from "../../web/src/presets/index.ts";
import { quickExp } from "../../web/src/physics/exp.ts";
import { modelOf } from "../../web/src/physics/model.ts";
import { normal } from "../../web/src/physics/random/normal.ts";
import { foldIn, keyOf, split, uniform } from "../../web/src/physics/random/threefry.ts";
import { makeSimulator, type Simulator } from "../../web/src/physics/simulator.ts";
import { startTokens } from "../../web/src/physics/start.ts";
import * as edit from "../../web/src/spec/edit.ts";
import { validate } from "../../web/src/spec/bounds.ts";
import { settled } from "../../web/src/spec/settle.ts";
import { toToml } from "../../web/src/spec/toml.ts";
import type { Spec } from "../../web/src/spec/types.ts";
import { renyiCentres } from "../../web/src/theory/centres.ts";
import { twoClusterAngle, twoClusterLifetime } from "../../web/src/theory/clusters.ts";
import { equiangular } from "../../web/src/theory/equiangular.ts";
import { equilibriumOrder } from "../../web/src/theory/equilibrium.ts";
import { curvesFor } from "../../web/src/theory/index.ts";
import { criticalTemperature, dominantMode, uniformEnergy } from "../../web/src/theory/uniform.ts";

// Requests are plain JSON, as the tests write them.
type Request = any;

const ANSWERS: Record<string, (request: Request) => unknown> = {
  random: ({ seed, size }) => ({
    uniform: uniform(keyOf(seed), size),
    normal: normal(keyOf(seed), size),
    split: split(keyOf(seed), 3),
    folded: foldIn(keyOf(seed), 86),
  }),
  exp: ({ values }) => values.map(quickExp),
  start: ({ spec }) => startTokens(spec),
  model: ({ spec }) => {
    const { weights, perceptron } = modelOf(spec);
    return { ...weights, perceptron };
  },
  run: ({ spec, steps, increments }) => {
    const given = increments && ((_: number, out: Float64Array) => out.set(increments));
    const simulator = makeSimulator(spec, "js", given);
    simulator.advance(steps);
    return stateOf(simulator);
  },
  detour: ({ spec, steps }) => detour(spec, steps),
  hold: ({ spec, steps, index }) => {
    const simulator = makeSimulator(spec, "js");
    simulator.hold(index);
    simulator.advance(steps);
    return stateOf(simulator);
  },
  observe: ({ spec, points, time, bins, index }) => {
    const frame = frameOf(points, time ?? 0);
    return {
      measured: measure(spec, frame),
      histogram: cosineHistogram(frame, spec.tokens.d, bins),
      attention: attentionMatrix(spec, frame, 4096).values,
      row: attentionRow(spec, frame, index),
    };
  },
  clusters: ({ space, d, points }) => measureReplay(space, d, frameOf(points, 0)),
  density: ({ points, bins }) => circleDensity(frameOf(points, 0), bins),
  toml: ({ spec }) => toToml(spec),
  presets: () => PRESETS.map(({ id, spec }) => ({ id, spec })),
  validate: ({ value }) => validate(value),
  edit: ({ spec, changes }) => edited(spec, changes),
  equiangular: ({ attraction, n, start, times }) => times.map(equiangular(attraction, n, start)),
  clusterAngle: ({ attraction, p, q, start, times }) =>
    times.map(twoClusterAngle(attraction, p, q, start)),
  lifetime: ({ attraction, p, q, from, to }) => twoClusterLifetime(attraction, p, q, from, to),
  mode: ({ d, beta }) => dominantMode(d, beta),
  critical: ({ d, beta, softmax, speed }) => criticalTemperature(d, beta, softmax, speed),
  uniformEnergy: ({ d, beta }) => uniformEnergy(d, beta),
  equilibrium: ({ d, beta, speed, temperature }) => equilibriumOrder(d, beta, speed, temperature),
  centres: ({ points, d, distance }) => renyiCentres(Float64Array.from(points), d, distance),
  curves: ({ spec, times }) =>
    curvesFor(spec).map((curve) => ({ ...curve, values: times.map(curve.at) })),
};

function frameOf(points: number[], time: number): Frame {
  return { time, points: Float64Array.from(points), radii: null };
}

function stateOf({ points, radii, time, steps }: Simulator): object {
  return { points, radii, time, steps };
}

/** Run on, go back to the start, run again through another model and back: the same end. */
function detour(spec: Spec, steps: number): unknown {
  const simulator = makeSimulator(spec, "js");
  const start = { time: 0, points: simulator.points.slice(), radii: simulator.radii?.slice() ?? null };
  simulator.advance(steps + 3);
  simulator.put(start, 0);
  simulator.change({ ...spec, model: { name: "HardmaxFlow" } });
  simulator.change(spec);
  simulator.put(start, 0);
  simulator.advance(steps);
  return stateOf(simulator);
}

function edited(spec: Spec, changes: [keyof typeof edit, unknown[]][]): unknown[] {
  let wanted = spec;
  return changes.map(([name, parameters]) => {
    wanted = (edit[name] as (spec: Spec, ...rest: unknown[]) => Spec)(wanted, ...parameters);
    const current = settled(wanted);
    return { spec: current, wrong: validate(current), toml: toToml(current) };
  });
}

const requests: Request[] = JSON.parse(readFileSync(0, "utf8"));
const plain = (_: string, value: unknown) => (ArrayBuffer.isView(value) ? Array.from(value as never) : value);
process.stdout.write(JSON.stringify(requests.map((request) => ANSWERS[request.do]!(request)), plain));
