"""Specs that the page simulates: every model, value, start, scheme and method, on circle and sphere."""

DIAGONAL = {2: [[1.0, 0.0], [0.0, -0.5]], 3: [[1.0, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, -0.6]]}
SYMMETRIC = {2: [[0.5, 0.3], [0.3, -0.2]], 3: [[0.5, 0.3, 0.0], [0.3, -0.2, 0.1], [0.0, 0.1, 0.4]]}
SKEW = {2: [[1.0, 0.7], [-0.4, 0.8]], 3: [[1.0, 0.7, 0.1], [-0.4, 0.8, 0.0], [0.2, 0.0, 1.1]]}


def spec(model, tokens, **solve):
    """A whole spec; 40 steps of the flow unless told."""
    solve = {"t1": 1.0, "method": "fixed", "dt": 0.025, "seed": 5, **solve}
    return {"title": "case", "says": "", "model": model, "tokens": tokens, "solve": solve}


def sphere(d, n=14, seed=3):
    return {"law": "uniform", "d": d, "n": n, "seed": seed}


def plane(d, n=9, seed=4):
    return {"law": "box", "d": d, "n": n, "seed": seed, "half_width": 1.5}


def layers(step=0.2):
    return {"t1": 10 * step, "method": "layers", "step": step, "dt": None}


def _models(d):
    """Models of the flow in dimension d, by name."""
    drawn = {"law": "GOE", "scale": 0.8}
    return {
        "sa": {"name": "SA", "beta": 4.0},
        "sa-flat": {"name": "SA", "beta": 0.0},
        "sa-repulsive": {"name": "SA", "beta": 3.0, "weights": {"V": -1.0}},
        "sa-diagonal": {"name": "SA", "beta": 2.0, "weights": {"V": DIAGONAL[d]}},
        "sa-goe": {"name": "SA", "beta": 2.0, "weights": {"V": drawn, "seed": 11}},
        "sa-ginibre-b": {
            "name": "SA",
            "beta": 1.5,
            "weights": {
                "V": {"law": "Ginibre", "scale": 0.7},
                "B": {"law": "Wigner", "scale": 0.9},
                "seed": 2,
            },
        },
        "sa-given-b": {"name": "SA", "beta": 2.5, "weights": {"B": SKEW[d], "V": SYMMETRIC[d]}},
        "usa-perspective": {"name": "USA", "beta": 2.0, "convention": "perspective"},
        "usa-metastability": {"name": "USA", "beta": 5.0, "convention": "metastability"},
        "usa-repulsive-b": {
            "name": "USA",
            "beta": 2.0,
            "convention": "metastability",
            "weights": {"V": -1.0, "B": SKEW[d]},
        },
        "causal": {"name": "CausalSA", "beta": 6.0},
        "causal-no-self": {"name": "CausalSA", "beta": 3.0, "self_term": False},
        "causal-alibi": {"name": "CausalSA", "beta": 3.0, "slope": 4.0, "weights": {"V": -1.0}},
        "perceptron-relu": {
            "name": "SA",
            "beta": 2.0,
            "plus": {"width": 7, "seed": 9, "scale": 0.5, "gradient": False, "activation": "relu"},
        },
        "perceptron-gelu": {
            "name": "USA",
            "beta": 1.0,
            "convention": "metastability",
            "plus": {"width": 5, "seed": 1, "scale": 0.6, "gradient": True, "activation": "gelu"},
        },
        "pre": {"name": "SA", "beta": 2.0, "normalisation": {"scheme": "pre"}},
        "mix-before": {
            "name": "SA",
            "beta": 2.0,
            "normalisation": {"scheme": "mix", "tau": 50.0},
        },
        "mix-after": {
            "name": "SA",
            "beta": 2.0,
            "normalisation": {"scheme": "mix", "tau": 1e-6},
        },
        "peri": {"name": "SA", "beta": 2.0, "normalisation": {"scheme": "peri"}},
        "ngpt": {"name": "SA", "beta": 2.0, "normalisation": {"scheme": "ngpt", "alpha": 0.5}},
        "sqrt": {"name": "USA", "beta": 1.0, "normalisation": {"scheme": "sqrt"}},
    }


def _flat_models(d):
    """Models on R^d."""
    return {
        "rescaled": {"name": "RescaledSA", "beta": 1.0},
        "rescaled-number": {"name": "RescaledSA", "beta": 1.0, "weights": {"V": -0.5}},
        "rescaled-symmetric": {
            "name": "RescaledSA",
            "beta": 0.7,
            "weights": {"V": SYMMETRIC[d], "B": SKEW[d]},
        },
    }


def _hardmax(d):
    """Hardmax moves in layers: its flow jumps where leaders change."""
    return {
        "hardmax": {"name": "HardmaxFlow"},
        "hardmax-b": {"name": "HardmaxFlow", "weights": {"B": SKEW[d]}},
    }


FLOWS = {
    f"{name}-{d}d": spec(model, tokens(d))
    for d in (2, 3)
    for models, tokens in ((_models(d), sphere), (_flat_models(d), plane))
    for name, model in models.items()
}
# So many tokens are summed by series in harmonics.
FLOWS.update(
    {
        f"crowd-{name}-{d}d": spec(model, sphere(d, 150 if d == 2 else 700), t1=0.5)
        for d, name, model in (
            (2, "sa", {"name": "SA", "beta": 9.0}),
            (2, "flat", {"name": "SA", "beta": 0.0}),
            (2, "usa", {"name": "USA", "beta": 2.0, "convention": "perspective"}),
            (2, "diagonal", {"name": "SA", "beta": 2.0, "weights": {"V": DIAGONAL[2]}}),
            (2, "peri", {"name": "USA", "beta": 2.0, "normalisation": {"scheme": "peri"}}),
            (3, "sa", {"name": "SA", "beta": 4.0}),
            (3, "usa", {"name": "USA", "beta": 0.01, "convention": "metastability"}),
            (3, "diagonal", {"name": "SA", "beta": 2.0, "weights": {"V": DIAGONAL[3]}}),
        )
    }
)
LAYERS = {
    f"{name}-layers-{d}d": spec(model, tokens(d), **layers(0.25))
    for d, models, tokens in (
        (2, _models(2), sphere),
        (3, _flat_models(3), plane),
        (2, _hardmax(2), sphere),
        (3, _hardmax(3), sphere),
        (3, {f"{name}-flat": model for name, model in _hardmax(3).items()}, plane),
    )
    for name, model in models.items()
}
for _case in LAYERS.values():
    del _case["solve"]["dt"]

STARTS = {
    f"{name}-{d}d": spec({"name": "SA", "beta": 1.0}, {"d": d, **tokens})
    for d in (2, 3)
    for name, tokens in {
        "uniform": {"law": "uniform", "n": 40, "seed": 2**40 + 3},
        "largest-seed": {"law": "uniform", "n": 5, "seed": 2**53 - 1},
        "hemisphere": {"law": "hemisphere", "n": 20, "seed": 1},
        "cap": {"law": "cap", "n": 20, "seed": 2, "radius": 0.7},
        "cap-centre": {
            "law": "cap",
            "n": 6,
            "seed": 2,
            "radius": 3.0,
            "centre": [1.0, -2.0, 0.5][:d],
        },
        "gaussian": {"law": "gaussian", "n": 20, "seed": 3, "scale": 1.5},
        "gaussian-flat": {
            "law": "gaussian",
            "n": 20,
            "seed": 3,
            "scale": 1.5,
            "space": "euclidean",
        },
        "box": {"law": "box", "n": 20, "seed": 4, "half_width": 2.5},
        "mixture": {
            "law": "mixture",
            "centres": [[1.0, 0.5, 0.2][:d], [-1.0, 0.3, 0.9][:d], [0.0, -1.0, 0.0][:d]],
            "per_cluster": 5,
            "radius": 0.4,
            "seed": 6,
        },
        "equiangular": {"law": "equiangular", "n": d, "correlation": 0.3},
        "points": {
            "law": "points",
            "points": [[0.3, 2.0, 1.0][:d], [-1.0, 0.2, 0.4][:d], [0.5, -0.5, 2.0][:d]],
            "normalise": True,
        },
        "perturbed": {
            "law": "equiangular",
            "n": 2,
            "correlation": -0.5,
            "perturb": 0.01,
            "perturb_seed": 77,
        },
    }.items()
}
STARTS["arcs-2d"] = spec(
    {"name": "SA", "beta": 1.0},
    {"law": "arcs", "d": 2, "centres": [0.0, 2.0, 4.5], "per_cluster": 7, "width": 0.1, "seed": 11},
)
