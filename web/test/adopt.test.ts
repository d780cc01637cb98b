// Specs as the engine writes them, taken over by the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { adoptSpec, cellText, specOfCell } from "../src/app/adopt.ts";
import { findPreset } from "../src/presets/index.ts";
import type { SweepAxis, SweepReplay } from "../src/replay/types.ts";
import { checkReplay, pack } from "../src/replay/unpack.ts";
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

function sweepOver(rows: SweepAxis, columns: SweepAxis): SweepReplay {
  const [high, wide] = [rows.values.length, columns.values.length];
  const statistics = [{ name: "clusters", values: pack(new Float64Array(high * wide), [high, wide]) }];
  return { kind: "sweep", title: "s", says: "", rows, columns, statistics, spec, notes: [] };
}

test("an axis that says what it sets is believed, whatever its name", () => {
  const rows = { name: "trial", values: [0, 1], labels: ["beta = 2, n = 7", "beta = 5, n = 9"] };
  const sets = { "model.beta": [2, 5], "tokens.n": [7, 9] };
  const sweep = sweepOver({ ...rows, sets }, { name: "time", values: [0, 3] });
  const cell = specOfCell(sweep, 1, 1) as Spec;
  assert.deepEqual([cell.model.beta, (cell.tokens as { n?: number }).n, cell.solve.t1], [5, 9, 3]);
  assert.equal(cell.title, "s: beta = 5, n = 9, time = 3");
});

test("words are settings too", () => {
  const rows = { name: "kind", values: [0, 1], labels: ["SA", "CausalSA"], sets: { "model.name": ["SA", "CausalSA"] } };
  const cell = specOfCell(sweepOver(rows, { name: "beta", values: [3], sets: { "model.beta": [3] } }), 1, 0) as Spec;
  assert.equal(cell.model.name, "CausalSA");
  assert.equal(cellText(rows, 0), "kind = SA");
});

test("an axis that sets what the page does not know is told, one that sets nothing is fine", () => {
  const rows = { name: "seed", values: [0], sets: { "solve.nothing.there": [3] } };
  const found = specOfCell(sweepOver(rows, { name: "time", values: [1] }), 0, 0);
  assert.match(String(found), /does not know how to set seed/);
  const cell = specOfCell(sweepOver({ name: "n", values: [6] }, { name: "save", values: [0, 1], sets: {} }), 0, 1) as Spec;
  assert.equal((cell.tokens as { n?: number }).n, 6);
  assert.equal(cell.solve.t1, spec.solve.t1);
});

test("labels and settings must fit their axis", () => {
  const time = { name: "time", values: [0, 1] };
  const good = sweepOver({ name: "beta", values: [1, 2], sets: { "model.beta": [1, 2] } }, time);
  assert.deepEqual(checkReplay(good), good);
  assert.throws(() => checkReplay(sweepOver({ name: "beta", values: [1, 2], labels: ["1"] }, time)), /as long as/);
  assert.throws(() => checkReplay(sweepOver({ name: "beta", values: [1, 2], sets: { "model.beta": [1] } }, time)), /as long as/);
});
