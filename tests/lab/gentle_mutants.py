"""Shipped specs, made tiny, with one or two gentle changes: most are still specs, and reach the run.

Random tables are refused at the door, so they try nothing but the door. A mutant here has a value moved a
little, replaced by another of its sort, left out, added, or (seldom) made extreme, of another type or
unknown. What would take long is capped here and not by the program.
"""

import copy
import random
import tomllib

from tokenflock.lab.catalogue import example_names, example_text
from tokenflock.sweeps.catalogue import sweep_example_names, sweep_example_text

# Sizes of the shipped examples that take no time; what an example lacks is not added.
TINY = {
    "tokens": {"n": 4, "d": 2, "per_cluster": 2},
    "density": {"modes": 12, "positions": 3},
    "solve": {"t1": 0.2, "dt": 0.05, "step": 0.05, "rtol": 1e-4, "atol": 1e-6, "tol": 1e-4},
    "save": {"every": 0.1},
}
OF_ONE = {
    "sphere": {"tokens": {"d": 3}},
    "normalisation": {"tokens": {"d": 4}},
    "metastable": {"save": {"log": {"first": 0.01, "count": 4}}},
    "density": {"density": {"law": {"name": "ripples", "amplitude": 0.02, "modes": 2, "seed": 2}}},
    "multihead-random": {"model": {"weights": {"heads": 2}}},
}
AXES = {"beta": [1.0, 3.0], "seed": {"seeds": 2}}
MOST_STEPS, MOST_TOKENS, MOST_SAVES = 200, 8, 50


def merged(table, changes, only_known=False):
    """The changes in a nested table."""
    for key, value in changes.items():
        if only_known and key not in table:
            continue
        if isinstance(value, dict) and isinstance(table.get(key), dict) and "name" not in value:
            merged(table[key], value, only_known)
        else:
            table[key] = copy.deepcopy(value)
    return table


def tiny(name):
    """A shipped example that runs in a moment."""
    is_sweep = name in sweep_example_names()
    table = tomllib.loads(sweep_example_text(name) if is_sweep else example_text(name))
    merged(table, TINY, only_known=True)
    merged(table, OF_ONE.get(name, {}))
    merged(table, {"output": {"figure": False}, "solve": {"max_steps": MOST_STEPS}})
    table["output"].pop("animation", None)
    if is_sweep:
        table["sweep"] = {"axes": copy.deepcopy(AXES), "batch": 4}
    return table


BASES = {name: tiny(name) for name in [*example_names(), *sweep_example_names()]}

OBSERVED = [
    *("energy", "scaled_energy", "energy_rate", "dissipation", "diameter", "order_parameter"),
    *("effective_rank", "mean_radius", "speed", "attention_entropy", "attention_rank", "leaders"),
    *("attention_matrix", "leader_mask", "entropy", "free_energy", "largest_density"),
    {"name": "clusters", "angle": 0.3, "as": "wide_clusters"},
    {"name": "cluster_sizes", "angle": 0.3, "largest": 2},
    {"name": "cluster_labels", "angle": 0.3},
    {"name": "gram_histogram", "bins": 3},
    {"name": "pair_fraction", "delta": 0.1},
    {"name": "fourier_moments", "modes": 2},
    {"name": "min_alignment", "distance": 0.5},
    {"name": "renyi_centres", "distance": 0.5},
    {"name": "peaks", "above": 1.0},
    {"name": "energy", "as": "steps"},
    {"name": "diameter", "as": "mass"},
]
ADDED = [
    ("title", "größer als \u221e"),
    ("says", "Anything."),
    ("model.beta", 0.0),
    ("model.beta", 40.0),
    ("model.beta", {"times": [0.1], "values": [1.0, 4.0]}),
    ("solve.seed", 5),
    ("solve.max_steps", 3),
    ("solve.log_clock", 1.0),
    ("save.states", False),
    ("save.every", None),
    ("stop.diameter", 1.0),
]
ADDED_TO_TOKENS = [
    ("model.beta", [1.0, 2.0]),
    ("model.mask", {"kind": "causal"}),
    ("model.mask", {"kind": "alibi", "slope": 1.0}),
    ("model.weights", {"V": -1.0}),
    ("model.weights", {"Q": {"law": "GOE", "scale": 0.5}, "heads": 2}),
    ("model.weights", {"times": [0.1], "pieces": [{"V": 1.0}, {"V": -1.0}]}),
    ("model.normalisation", {"scheme": "ngpt", "alpha": 0.5}),
    ("model.normalisation", {"scheme": "peri"}),
    ("model.normalisation", {"scheme": "ngpt", "alpha": {"times": [0.1], "values": [0.5, 1.0]}}),
    ("model.plus", {"width": 2}),
    ("model.plus", {"times": [0.1], "pieces": [{"width": 2}, {"width": 2, "seed": 1}]}),
    ("tokens.samples", 2),
    ("tokens.perturb", 0.01),
    ("tokens.ordered", False),
    ("tokens.weights", [1.0, 2.0, 3.0, 4.0]),
    ("solve.merge_radius", 0.01),
    ("solve.reduction", "tiled"),
    ("solve.reduction", "auto"),
    ("solve.method", "stiff"),
    ("save.at", [0.05]),
    ("stop.clusters", {"count": 3, "angle": 0.3}),
]
ADDED_TO_SWEEPS = [
    ("sweep.axes.n", [3, 4]),
    ("sweep.axes.t1", [0.1, 0.2]),
    ("sweep.axes.beta", {"from": 1.0, "to": 4.0, "count": 2, "scale": "log"}),
    ("sweep.axes.pair", {"zip": {"tokens.law": ["uniform", "hemisphere"], "solve.t1": [0.1, 0.2]}}),
    ("sweep.axes.trial", {"random": 2, "over": {"solve.rtol": {"from": 1e-5, "to": 1e-4}}}),
    ("sweep.axes.seed", {"seeds": 2, "per": "cell"}),
    ("sweep.axes.outcome", {"values": [1.0, 2.0], "set": "beta"}),
    ("sweep.batch", 1),
    ("sweep.seed", 7),
    ("save.states", True),
    ("stop.clusters", {"count": 3, "angle": 0.3}),
    ("model.mask", {"kind": "causal"}),
]
# Words that may stand in each other's place.
WORDS = [
    ("SA", "USA", "CausalSA", "SinkhornSA", "LinearSA", "SigmoidSA", "HardmaxFlow", "KineticFlow"),
    ("uniform", "hemisphere", "gaussian"),
    ("adaptive", "fixed", "layers", "stiff"),
    ("dense", "tiled", "auto", "spectral"),
    ("post", "pre", "peri", "sqrt"),
    ("relu", "gelu"),
    ("perspective", "metastability", "kinetic"),
    ("Ginibre", "Wigner", "GOE"),
    ("cosine", "ripples", "uniform", "von_mises"),
    ("fourier", "quantiles", "layered"),
    ("linear", "log"),
    ("seed", "cell"),
]
WHOLE_EXTREMES = [0, 1, -1, 3, 10**9, 2**63, 10**30]
EXTREMES = [0.0, -1.0, 1e-300, 1e300, 1e15, float("nan"), float("inf"), -0.0, 5e-324]
OF_ANOTHER_TYPE = ["words", True, [], {}, [[1.0]], 3, 0.5, "", [1.0, "x"]]
KINDS = {
    "near": 9,
    "add": 9,
    "observe": 5,
    "drop": 4,
    "word": 3,
    "extreme": 2,
    "type": 1,
    "unknown": 1,
}


def places(node, path=()):
    """Paths of everything in a nested table."""
    entries = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in entries:
        yield (*path, key), value
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def put(table, path, value):
    *tables, key = path
    for step in tables:
        if isinstance(table, dict) and not isinstance(table.get(step), (dict, list)):
            table[step] = {}
        table = table[step]
    table[key] = value


def dropped(table, path):
    *tables, key = path
    for step in tables:
        table = table[step]
    del table[key]


def near(draw, value):
    """A number not far away, of the same type."""
    if isinstance(value, int):
        return max(0, value + draw.choice([-1, 1, 2]))
    return value * draw.choice([0.5, 0.9, 1.1, 2.0])


def change(draw, table):
    """One change; what it was, in words."""
    kind = draw.choices([*KINDS], [*KINDS.values()])[0]
    found = [(path, value) for path, value in places(table) if path[0] not in ("title", "says")]
    numbers = [(p, v) for p, v in found if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if kind == "near":
        path, value = draw.choice(numbers)
        put(table, path, near(draw, value))
    elif kind == "extreme":
        path, value = draw.choice(numbers)
        put(table, path, draw.choice(WHOLE_EXTREMES if isinstance(value, int) else EXTREMES))
    elif kind == "type":
        path, _ = draw.choice(found)
        put(table, path, copy.deepcopy(draw.choice(OF_ANOTHER_TYPE)))
    elif kind == "word":
        known = [(p, v, w) for p, v in found for w in WORDS if isinstance(v, str) and v in w]
        path, value, words = draw.choice(known)
        put(table, path, draw.choice([word for word in words if word != value]))
    elif kind == "drop":
        path, _ = draw.choice([(p, v) for p, v in found if len(p) > 1])
        dropped(table, path)
    elif kind == "unknown":
        path = (draw.choice(["model", "solve", "save", "output"]), draw.choice(["extra", "betta"]))
        put(table, path, 1.0)
    elif kind == "observe":
        path = ("save", "observe")
        observe = table.setdefault("save", {}).setdefault("observe", [])
        if not isinstance(observe, list):
            return f"{kind} nothing"
        observe.append(copy.deepcopy(draw.choice(OBSERVED)))
    else:
        more = ADDED_TO_SWEEPS if "sweep" in table else ADDED_TO_TOKENS
        name, value = draw.choice(ADDED + (more if "tokens" in table else []))
        path = tuple(name.split("."))
        if value is not None:
            put(table, path, copy.deepcopy(value))
        else:
            table.get("save", {}).pop("every", None)
    return f"{kind} {'.'.join(map(str, path))}"


def capped(table):
    """Without what is a good spec and takes long."""
    solve, tokens, save = (table.get(name) for name in ("solve", "tokens", "save"))
    if isinstance(solve, dict):
        steps = solve.get("max_steps", MOST_STEPS + 1)
        if isinstance(steps, int) and steps > MOST_STEPS:
            solve["max_steps"] = MOST_STEPS
    if isinstance(tokens, dict):
        for name in ("n", "per_cluster", "samples", "d"):
            if isinstance(tokens.get(name), int) and MOST_TOKENS < tokens[name] < 10**8:
                tokens[name] = MOST_TOKENS
    if isinstance(solve, dict) and isinstance(save, dict):
        every, t1 = save.get("every"), solve.get("t1")
        numbers = all(isinstance(v, (int, float)) and v > 0 for v in (every, t1))
        if numbers and MOST_SAVES < t1 / every <= 2e6:
            save["every"] = t1 / 4
    return table


def mutant(seed, bases=tuple(BASES)):
    """A mutant by its number: the name of its base, what was changed, and its table."""
    draw = random.Random(seed)
    name = draw.choice(bases)
    table = copy.deepcopy(BASES[name])
    changes = []
    for _ in range(draw.choice([1, 1, 2])):
        try:
            changes.append(change(draw, table))
        except (IndexError, KeyError, TypeError, AttributeError):
            # The first change took away what the second is about.
            continue
    return name, changes, capped(table)
