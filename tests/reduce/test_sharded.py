"""Sharded: 8 virtual devices and two real processes get the sums and the paths of one device.

The number of devices of a process is fixed when it starts, so this file also is the program that the
tests start: with no argument on 8 devices, with an address as one of two processes.
"""

import json
import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

import tokenflock as flock

DEVICES = 8
TILE = 5
TIMEOUT = 300
FEW = "fewer rows than columns, on 3 devices"
EXCHANGES = ("ring", "gather")
pytestmark = pytest.mark.xdist_group("sharded")


def reductions(devices=None):
    return {name: flock.Sharded(flock.Tiled(TILE), name, devices) for name in EXCHANGES}


def problems():
    """Kinds, masks and flags, on weighted tokens that 8 devices cannot share evenly."""
    cases = {
        "softmax, own value dropped": (flock.kinds.Softmax(), flock.masks.Full(), True),
        "softmax, causal": (flock.kinds.Softmax(), flock.masks.Causal(), False),
        "unnormalised, alibi, own value dropped": (
            flock.kinds.Unnormalised(),
            flock.masks.ALiBi(7.0),
            True,
        ),
        "hardmax, causal without itself": (
            flock.kinds.Hardmax(),
            flock.masks.Causal(self_term=False),
            False,
        ),
        "squared distance": (flock.kinds.L2(), flock.masks.Full(), True),
    }
    made = {name: problem(*case) for name, case in cases.items()}
    return {**made, FEW: problem(flock.kinds.Softmax(), flock.masks.Full(), False, rows=20)}


def problem(kind, mask, drop_self, n=101, rows=None):
    import jax.numpy as jnp

    from tokenflock.reduce import Problem

    rng = np.random.default_rng(4)
    tokens = rng.normal(size=(n, 3))
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
    values = rng.normal(size=(n, 2))
    masses = np.log(rng.uniform(0.2, 2.0, n) / n)
    arrays = [jnp.asarray(array) for array in (5.0, tokens[:rows], tokens, values, masses)]
    return Problem(kind, mask, *arrays, drop_self, unit_keys=True, own_keys=rows is None)


# What the program on 8 devices reports.


def pointwise():
    """Largest error of a sum, relative to the largest sum, by case and exchange."""
    import jax

    report = {}
    for case, given in problems().items():
        exact = flock.Dense()(given)
        ways = reductions(jax.devices()[:3] if case == FEW else None)
        report[case] = {name: error(way(given), exact) for name, way in ways.items()}
    return report


def error(found, exact):
    return float(np.max(np.abs(found - exact)) / np.max(np.abs(exact)))


def derivatives():
    """Largest error of a derivative, by what is varied and exchange."""
    import equinox as eqx
    import jax.numpy as jnp

    given = problem(flock.kinds.Softmax(), flock.masks.ALiBi(7.0), True)
    target = jnp.asarray(np.random.default_rng(5).normal(size=given.values.shape))

    def slopes(way):
        slope = eqx.filter_jit(eqx.filter_grad(lambda p: jnp.sum(way(p) * target)))(given)
        names = ("queries", "keys", "values", "log_weights", "beta")
        return {**{name: getattr(slope, name) for name in names}, "slope": slope.mask.slope}

    exact = slopes(flock.Dense())
    return {
        name: {varied: error(slopes(way)[varied], exact[varied]) for varied in exact}
        for name, way in reductions().items()
    }


def trajectory():
    """Two heads, a batch of samples and of betas, a mask: the end of the path and where it lies."""
    tokens = flock.uniform(flock.Sphere(3), 40, seed=2, samples=2)
    weights = flock.Weights.gaussian(d=3, seed=1, heads=2)
    model = flock.Dynamics(None, flock.Attention(weights, [1.0, 4.0], mask=flock.masks.Causal()))
    exact, split = (
        flock.solve(model, tokens, t1=1.0, method=flock.Layers(0.1), reduction=way)
        for way in (flock.Dense(), flock.Sharded(exchange="ring"))
    )
    points = split.arrays["final_points"]
    return {
        "error": float(np.max(np.abs(points - exact.final.points))),
        "moved": float(np.max(np.abs(tokens.points - exact.final.points))),
        "tokens_per_device": points.addressable_shards[0].data.shape[-2],
        "reduction": split.attributes["numerics"]["reduction"],
    }


def largest_arrays(n=4096, tile=64):
    """Elements of the largest array in the compiled program of one device, over n^2."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    arrays, rest = eqx.partition(
        problem(flock.kinds.Softmax(), flock.masks.Full(), True, n=n), eqx.is_array
    )
    ways = {name: flock.Sharded(flock.Tiled(tile), exchange=name) for name in EXCHANGES}
    ways["dense"] = flock.Sharded(flock.Dense())
    programs = {name: lambda a, way=way: way(eqx.combine(a, rest)) for name, way in ways.items()}
    programs["ring, gradient"] = jax.grad(lambda a: jnp.sum(programs["ring"](a) ** 2))
    return {
        name: largest_array(jax.jit(program).lower(arrays).compile().as_text()) / n**2
        for name, program in programs.items()
    }


def largest_array(program):
    shapes = re.findall(r"\b(?:f|s|u|pred)\d*\[([\d,]+)\]", program)
    return max(int(np.prod([int(side) for side in shape.split(",")])) for shape in shapes)


def report_of_eight_devices():
    import jax
    from jaxtyping import install_import_hook

    install_import_hook(["tokenflock.reduce", "tokenflock.kinds"], "beartype.beartype")
    return {
        "devices": jax.device_count(),
        "pointwise": pointwise(),
        "derivatives": derivatives(),
        "trajectory": trajectory(),
        "largest_arrays": largest_arrays(),
    }


def program(*arguments, devices, **environment):
    flags = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def last_lines(*processes):
    """What each process reported; all of them are ended if one fails or hangs."""
    try:
        outputs = [process.communicate(timeout=TIMEOUT) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, complaints) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, complaints[-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]


@pytest.fixture(scope="module")
def eight():
    (report,) = last_lines(program(devices=DEVICES))
    assert report["devices"] == DEVICES
    return report


def test_sums_equal_those_of_one_device(eight):
    assert len(eight["pointwise"]) == 6
    for case, errors in eight["pointwise"].items():
        for exchange in EXCHANGES:
            assert errors[exchange] <= 2.3e-16 * 101, (case, exchange)


def test_derivatives_equal_those_of_one_device(eight):
    for exchange in EXCHANGES:
        assert max(eight["derivatives"][exchange].values()) < 1e-12, eight["derivatives"]


def test_a_batch_of_paths_equals_that_of_one_device(eight):
    assert eight["trajectory"]["error"] < 1e-12
    assert eight["trajectory"]["moved"] > 0.1


def test_the_ring_keeps_the_tokens_of_a_solve_split(eight):
    assert eight["trajectory"]["tokens_per_device"] == 40 // DEVICES


def test_a_run_says_where_it_was_made(eight):
    described = eight["trajectory"]["reduction"]
    assert described["class"] == "Sharded"
    assert described["exchange"] == "ring"
    assert described["devices"] == [f"cpu:{index}" for index in range(DEVICES)]


def test_no_device_holds_the_score_matrix(eight):
    share = eight["largest_arrays"]
    # The measure sees a matrix where there is one: the rows of one device, dense.
    assert share["dense"] >= 1 / DEVICES
    for name in ("ring", "gather", "ring, gradient"):
        assert share[name] < 0.01, share


# Two processes.


def path(reduction):
    """37 tokens: not to be shared evenly by 4 devices."""
    tokens = flock.uniform(flock.Sphere(3), 37, seed=0)
    # Rounding may tip the decision on a step: two adaptive runs agree to their tolerance, not better.
    run = flock.solve(flock.SA(4.0), tokens, 1.0, rtol=1e-12, atol=1e-14, reduction=reduction)
    return np.asarray(run.final.points), run.health["steps"]


def one_of_two_processes(address, index):
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, num_processes=2, process_id=index)
    points, steps = path(flock.Sharded())
    given = problem(flock.kinds.Softmax(), flock.masks.ALiBi(7.0), True)
    return {
        "devices": [jax.local_device_count(), jax.device_count()],
        "points": points.tolist(),
        "steps": steps,
        "sums": {name: np.asarray(way(given)).tolist() for name, way in reductions().items()},
    }


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@pytest.mark.slow
def test_two_processes_give_the_path_of_one(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    both = [
        program(address, str(index), devices=2, TOKENFLOCK_CACHE=str(tmp_path / str(index)))
        for index in range(2)
    ]
    first, second = last_lines(*both)
    assert first["devices"] == [2, 4]
    assert first == second
    points, steps = path(flock.Dense())
    assert steps > 5
    np.testing.assert_allclose(first["points"], points, rtol=0, atol=1e-12)
    exact = flock.Dense()(problem(flock.kinds.Softmax(), flock.masks.ALiBi(7.0), True))
    for exchange in EXCHANGES:
        np.testing.assert_allclose(first["sums"][exchange], exact, rtol=0, atol=2.3e-16 * 101)


# One device, and refusals.


def test_one_device_is_the_inner_reduction():
    given = problem(flock.kinds.Softmax(), flock.masks.Causal(), True)
    way = flock.Sharded(flock.Tiled(7), devices=["cpu:0"])
    np.testing.assert_array_equal(way(given), flock.Tiled(7)(given))


def test_sinkhorn_is_refused():
    tokens = flock.uniform(flock.Sphere(3), 6, seed=0)
    with pytest.raises(flock.errors.InputError, match="Sinkhorn attention is not a single sum"):
        flock.solve(flock.SinkhornSA(1.0), tokens, t1=1.0, dt=0.1, reduction=flock.Sharded())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"exchange": "post"}, "'gather' or 'ring', got exchange='post'"),
        ({"devices": []}, "at least one device"),
        ({"devices": ["cpu:0", "cpu:0"]}, "each of them once"),
        ({"devices": ["cpu:77"]}, "this program has"),
    ],
)
def test_impossible_requests_are_refused(options, says):
    with pytest.raises(flock.errors.InputError, match=says):
        flock.Sharded(**options).settle([])


if __name__ == "__main__":
    several = len(sys.argv) > 1
    report = one_of_two_processes(sys.argv[1], int(sys.argv[2])) if several else None
    print(json.dumps(report or report_of_eight_devices()))
