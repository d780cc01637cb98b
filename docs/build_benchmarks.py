"""Rebuild docs/benchmarks.md from the committed results.

Usage: make bench, or python docs/build_benchmarks.py after copying results from another machine
"""

import json
from pathlib import Path

from tokenflock.applications.benchmarks import all_benchmarks
from tokenflock.cli.bench import bar_lines, table_rows

PAGE = Path(__file__).parent / "benchmarks.md"
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
PREFACE = """# Benchmarks

How fast, how exact, how much memory: every statement of speed has a benchmark, with the peers beside us
in the same run. This page is written from `benchmarks/results/*.json` by `make bench`.

```console
$ pip install -e ".[bench,spectral]"     # the peers: torch, torchdiffeq, KeOps; finufft
$ tokenflock bench --list
$ tokenflock bench dense-cpu
$ tokenflock bench spectral-circle --json --out circle.json
$ make bench                             # all that this machine can run, into benchmarks/results/
```

At `--scale quick` each ends within a minute on two cores; `--scale full` repeats more often, goes to
larger sizes, and measures peers that quick extrapolates. A peer that is not installed is named as
missing. The benchmarks of a GPU refuse to start without one.

How to read a table. Ours comes first, then every peer, in the same unit. All are warm: compiled, with
their tokens in place. They run in turn, in rounds that begin with another one each time, and the number
is the median of the rounds. The *spread* is half the range of our repeats over their median. *Ours
against it* is above 1 where ours is better: more pairs/s, fewer seconds, fewer bytes. The *error* is the
largest relative error of a row (|found - exact| / |exact| of a token's output) against sums in float64
straight from the definition. A peer marked *extrapolated* or *scaled* was measured at a smaller size and
multiplied up by its count of pairs or of betas; one marked *computed* was not run. Below a table stands
what this project promises of it.

The JSON of one benchmark is `{"name", "machine", "rows": [{"case", "ours", "unit", "error", "peers":
{name: value}, "ratio"}]}`, with `scale`, `command`, `date`, `seconds` and `versions` beside the rows.
`ratio` is ours against the best peer; a row also has `spread`, `bound` (the error our method states),
`peer_errors`, `missing` (who did not run, and why) and `bars` (what is promised, what was measured,
whether it is met). Units are `pairs/s` (more is better), `s`, `GB` and `exponent` (less is better).
"""
NOTES = {
    "dense-cpu": """One evaluation of sum_j softmax_j(beta <x_i, x_j>) x_j at all tokens, the sum that a
step of a run evaluates. NumPy *as published* is the form of the papers' scripts: the n x n matrix in
float64, an exponential without a shift. KeOps is compiled before it is timed; at d = 64 it gets a part of
the rows, since its time grows with rows times columns.""",
    "spectral-circle": """The same sum on the circle from the Fourier series of e^{beta cos}, in float64
to a stated tolerance, at a cost of n times the degree. *finufft by hand* is the same series with a degree
read off the Bessel functions and two non-uniform Fourier transforms: no bound, no check that it applies.
The last row is the exponent p of time ~ n^p.""",
    "spectral-sphere": """The same on the sphere S^2, by spherical harmonics.""",
    "causal": """Token i sees j <= i. The series turns the sums over the past into prefix sums of moments,
so their cost grows like n. The peers evaluate all pairs.""",
    "kinetic": """Token j sees k < j with the weight e^{-slope (j-k)/n} on the circle (2605.09213). The same
series as above, and a whole run with it as a user calls it. The peers sum all pairs, or filter the moments of
the past by hand, with no bound on the error. The whole run is 572 evaluations of the field.""",
    "memory": """The peak of resident memory during the evaluation in a fresh process, above what it held
after the same evaluation of 512 tokens and the compilation.""",
    "solve": """n tokens on the sphere from t = 0 to T, float64. The error is the largest difference of a
coordinate at T from a solve at tolerance 1e-13. Every solver runs at eight tolerances; its time at the
error of a row is read off the line through (log error, log time), so that all are compared at equal
error. Ours is `flock.solve` as a user calls it, with checks, the energy watched at every save, the health
report and the labelled result: about 5 ms of Python beside the compiled program. Plain diffrax is a
jitted function of an array, written for this one model, and returns an array.""",
    "meanfield": """The continuity equation d_t rho + (rho v)' = 0 on the circle, from 1 + 0.01 cos 4 theta +
0.01 cos(3 theta + 1) to T, for SA: its clock is that of the density, which grows by e^{0.7 t}. (USA at
beta = 9 in the clock of the papers grows by e^{0.7 I_0(9) t} = e^{760 t} and is atoms by t = 0.01; in the
clock of metastability, e^9 times slower, little happens before t = 5.) Ours is `flock.solve` as a user
calls it, with its health report. The scheme of public code is Lax-Friedrichs at dt = 0.02 dx; written here
with convolutions by FFT, in NumPy and as a compiled loop of JAX, and the faster counts. At quick scale a
stretch of its steps is timed and scaled. Its step makes it viscous (dx^2/(2 dt) = 25 dx); at the largest
stable step it is 150 times less so, and as many times faster: that is the second peer. The error is the
largest difference of the density, 1 being uniform, from a run of half as many modes again at tolerances
of 1e-13.""",
    "random-depth": """Networks of random weights, fresh V and A = W W'^T in every layer, from two orthogonal
tokens; the overlap at the end of every chain is kept. Ours draws the 3 n d normal numbers that the n tokens
of a layer need, NumPy the 3 d^2 of the matrices, as one would write it: chain by chain, and with all chains
as one batch. The error is the difference of the mean overlap from NumPy's in standard errors. A normal number
costs about 10 ns in NumPy and 50 ns in JAX, whose generator gives every chain a stream of its own on any
number of devices: at d = 8 this limits ours against the NumPy batch; in higher dimensions ours is faster,
because it draws fewer. No factor is promised.""",
    "startup": """Fresh processes. What other scripts import before anything happens stands beside ours.""",
    "trace": """Random weights in the shapes of known checkpoints (a vocabulary of 1,000, so that no head
of a language model weighs on anybody), random tokens, float32. *A pass with statistics* is what every
text needs, and less than twice the plain pass is promised for it; *flock.trace* adds what a model needs
once, the spectra of its heads (two seconds for the 270 heads of SmolLM2). The error is the largest
difference of a layer's mean cosine from its definition, evaluated on what `output_hidden_states` returns.
TransformerLens keeps every activation and computes no statistic. Memory is the peak above what a fresh
process held with the model in place.""",
    "sentiment": """One step of `tokenflock train sentiment` at its usual sizes: the loss of a batch through
softmax attention at tau = 1e-3, its exact derivative, clipping and Adam, in float32, on words as frequent as
words are. torch is the same network as one would write it there. The error is that of the loss, relative to
float64. A real data set end to end stands in [train.md](train.md), from
`benchmarks/results/sentiment-reviews.json`.""",
    "play": """Fifty pages in a process of their own, each with a run that begins anew when it ends and
whose frames it reads; the server and its workers share the cores with them. Timed in a third process, one
question at a time: 95 of 100 answers come within the number. Runs are computed in processes of lower
priority, never in the one that answers.""",
    "sweep": """Cells of about a second in blocks of two, each written and flushed to disk. Seconds per
cell are counted from the first stored block of every worker to the last, so that starting processes and
compiling are left out; the bare loop calls the same compiled program and keeps nothing. The three take
turns, and the best of three rounds counts. The third row is
the whole command, from its start, with programs in the compilation cache.""",
    "gpu-dense": """As dense-cpu, on one GPU. The fused bfloat16 kernels keep three digits; their heads
are padded to a multiple of eight.""",
    "gpu-phase": """One panel of the phase diagram of 2312.10794, Fig. 3, with the published settings: at
each of 90 values of beta in [0.1, 9], 2048 systems of 32 tokens pass 300 layers of step 0.1, and the
fraction of pairs with <x_i, x_j> > 0.999 is averaged after every layer. The published script takes one
beta after the other in float64 and indexes each matrix with a mask made on the host. The error is the
largest difference of the statistic from the scan in float64 with the same starts. Of the panel of d = 2 the
kernel takes 0.027 s; what limits it beyond that is Python on the host, which checks the model and labels
the run (outcome, health and description of every system): 0.06 s on this machine, for any number of layers.
Until the ensemble became a run like any other it returned bare means, in 0.033 s.""",
}


def page() -> str:
    """The text of the page."""
    parts = [PREFACE]
    for benchmark in all_benchmarks():
        parts += [f"## {benchmark.name}\n", f"{_capital(benchmark.says)}.\n"]
        parts += [f"{NOTES[benchmark.name]}\n", *_results(benchmark.name)]
    return "\n".join(parts)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _results(name: str) -> list[str]:
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return ["No result is committed yet.\n"]
    result = json.loads(file.read_text())
    used = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
    head = f"{result['date']}, {result['machine']}; `{result['command']}`, {result['seconds']:.0f} s.\n"
    parts = [head]
    for row in result["rows"]:
        parts += [f"**{row['case']}**" + _bound(row), "", *_table(row), ""]
        promises = [f"*{_capital(line)}.*" for line, _ in bar_lines(row)]
        parts += ["  \n".join(promises) + "\n"] if promises else []
        parts += [f"Missing: {'; '.join(row['missing'])}.\n"] if row["missing"] else []
    return [*parts, f"With {used}.\n"]


def _bound(row: dict) -> str:
    return "" if row["bound"] is None else f" (stated error bound {row['bound']:.1e})"


def _table(row: dict) -> list[str]:
    lines = ["| | | ours against it | error |", "|---|---|---|---|"]
    for name, value, times, error in table_rows(row):
        lines.append(f"| {name} | {value} | {times} | {error.removeprefix('error ')} |")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page())
