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

test("a cell with seeds of its own opens its own run", () => {
  const rows = { name: "beta", values: [1, 2], sets: { "model.beta": [1, 2] } };
  const columns = { name: "n", values: [5, 6, 7], sets: { "tokens.n": [5, 6, 7] } };
  const largest = 2 ** 53 - 1;
  const seeds = [{ path: "tokens.seed", values: pack(Float64Array.of(10, 11, 12, 13, largest, Number.NaN), [2, 3]) }];
  const sweep = { ...sweepOver(rows, columns), seeds };
  const tokensOf = (row: number, column: number) => (specOfCell(sweep, row, column) as Spec).tokens as { seed?: number };
  assert.deepEqual([tokensOf(0, 0), tokensOf(0, 2), tokensOf(1, 0), tokensOf(1, 1)].map(({ seed }) => seed), [10, 12, 13, largest]);
  assert.match(String(specOfCell(sweep, 1, 2)), /not stored/);
  const shared = { ...sweep, seeds: [{ path: "tokens.seed", values: pack(Float64Array.of(3, 4), [2, 1]) }] };
  assert.equal(((specOfCell(shared, 1, 2) as Spec).tokens as { seed?: number }).seed, 4);
  assert.deepEqual(checkReplay(sweep), sweep);
  assert.deepEqual(checkReplay(shared), shared);
  const foreign = { ...sweep, seeds: [{ path: "solve.nothing.there", values: shared.seeds[0]!.values }] };
  assert.match(String(specOfCell(foreign, 0, 0)), /does not know how to set/);
  const short = { ...sweep, seeds: [{ path: "tokens.seed", values: pack(Float64Array.of(3, 4), [1, 2]) }] };
  assert.throws(() => checkReplay(short), /one per cell/);
});
