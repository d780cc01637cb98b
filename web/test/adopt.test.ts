// Specs as the engine writes them, taken over by the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { adoptSpec, specOfCell } from "../src/app/adopt.ts";
import { findPreset } from "../src/presets/index.ts";
import type { SweepReplay } from "../src/replay/types.ts";
import { pack } from "../src/replay/unpack.ts";
import type { Spec } from "../src/spec/types.ts";

const { spec } = findPreset("circle")!;

function cellAt(base: unknown, name: string, value: number): Spec | string {
  const statistics = [{ name: "clusters", values: pack(new Float64Array(1), [1, 1]) }];
  const rows = { name, values: [value] };
  const columns = { name: "beta", values: [3] };
  return specOfCell({ kind: "sweep", title: "s", says: "", rows, columns, statistics, spec: base } satisfies SweepReplay, 0, 0);
}

test("a step without a method means layers, a dt fixed steps", () => {
  const solve = (given: object) => (adoptSpec({ ...spec, solve: given }) as Spec).solve;
  assert.deepEqual(solve({ t1: 4, step: 0.5 }), { t1: 4, method: "layers", step: 0.5, seed: 0 });
  assert.deepEqual(solve({ t1: 4, dt: 0.02 }), { t1: 4, method: "fixed", dt: 0.02, seed: 0 });
  assert.equal(solve({ t1: 4 }).method, "fixed");
});

test("a cell at the start keeps the end of the sweep", () => {
  for (const name of ["time", "t1", "solve.t1"]) {
    const cell = cellAt(spec, name, 0) as Spec;
    assert.equal(cell.solve.t1, spec.solve.t1, name);
    assert.match(cell.title, / = 0/);
    assert.equal((cellAt(spec, name, 7) as Spec).solve.t1, 7);
  }
});

test("Brownian noise as the engine resolves it", () => {
  const noise = { kind: "brownian", temperature: 0.1, scale: null, beta: 1 };
  const adopted = adoptSpec({ ...spec, model: { name: "SA", beta: 2, noise } }) as Spec;
  assert.deepEqual(adopted.model.noise, { kind: "brownian", temperature: 0.1 });
  const common = { kind: "common", temperature: null, scale: 0.5, beta: 1 };
  assert.equal(typeof adoptSpec({ ...spec, model: { name: "SA", beta: 2, noise: common } }), "string");
});
