"""Gaussian runs that say what happened to them: fixed steps at a pole, the identity, 64 bits."""

import ast
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.kinds import DotProduct, Linear, SquaredDistance
from tokenflock.kinds.gaussian import Affine
from tokenflock.meanfield.moments import LARGEST_NUMBER, gaussian_density

PACKAGE = Path(flock.__file__).parent
MEAN = np.array([0.6, -0.4])
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
SKEWED = np.array([[0.3, -0.5], [0.1, 0.2]])
VALUE = np.array([[0.7, -0.4], [0.2, 1.1]])


# --- fixed steps ----------------------------------------------------------------------------------


def by_fixed_steps(strength, start, t1, dt):
    """Softmax with A = strength I; all share one program."""
    model = flock.SA(1.0, weights=flock.Weights(B=strength * np.eye(2)))
    return flock.solve(model, start, t1, dt=dt, throw=False)


@pytest.mark.parametrize("spread", [1.0, pytest.param(1.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dt", [0.25, 0.1, 0.037, 0.01])
def test_a_fixed_step_over_the_pole_is_a_blow_up(spread, dt):
    """sigma = s/(1 - 2 s t): a step that begins before the pole and is within it ends the run."""
    run = by_fixed_steps(1.0, gaussian_density(np.zeros(2), spread * np.eye(2)), 1.0, dt)
    assert run.outcome == "blow-up"
    assert run.health["blow_up_time"] == pytest.approx(1 / (2 * spread), abs=dt)
    assert run.health["blow_up_time"] >= run.reached
    assert run.health["finite"]
    assert run.health["lowest_density"] > 0


def test_fixed_steps_that_leave_the_doubles_at_a_bounded_rate_are_no_blow_up():
    run = by_fixed_steps(-1.0, gaussian_density(MEAN, np.eye(2)), 900.0, 0.5)
    assert run.outcome == "non-finite"
    assert np.abs(run.final.state).max() == pytest.approx(LARGEST_NUMBER, rel=1e-6)
    assert run.health["blow_up_time"] == np.inf


def test_a_step_too_long_for_a_contraction_is_halved_and_no_blow_up():
    """sigma' = -6 sigma^2 by steps of 3: the first one would end at a negative variance."""
    run = by_fixed_steps(-3.0, gaussian_density(MEAN, np.eye(2)), 9.0, 3.0)
    assert run.outcome != "blow-up"
    assert run.health["rejected_steps"] > 0
    assert run.health["lowest_density"] > 0


# --- the identity ---------------------------------------------------------------------------------

LOW = {"Q": [[0.3, 0.8]], "K": [[1.0, -0.4]], "V": VALUE}
MODELS = {
    "softmax": flock.SA(0.8, weights=flock.Weights(B=SKEWED, V=VALUE)),
    "l2": flock.L2SA(0.4, weights=flock.Weights(Q=SKEWED, K=VALUE, V=-0.5)),
    "l2, low rank": flock.L2SA(0.4, weights=flock.Weights(**LOW)),
    "linear": flock.LinearSA(0.8, weights=flock.Weights(B=SKEWED, V=VALUE)),
    "sum": flock.Dynamics(
        None,
        flock.Attention(flock.Weights(B=SKEWED, V=VALUE), 1.3, flock.kinds.Sinkhorn())
        + flock.Attention(flock.Weights(B=SKEWED), 1.0)
        + flock.Drift(-VALUE),
        flock.Brownian(0.2),
    ),
}


def both_sides(model, start):
    """dL/dt as the derivative of the free energy along the flow, and as the power."""
    scheme = start.on.scheme()
    flow = scheme.transport(model, 0.0, start.state)
    energy = lambda state: scheme.free_energy(model, 0.0, state)  # noqa: E731
    along = jax.jvp(energy, (start.state,), (flow,))[1]
    return float(along), float(scheme.power(model, 0.0, start.state))


@pytest.mark.parametrize("name", MODELS)
def test_the_power_is_the_rate_of_the_free_energy(name):
    """Also where squares are no numbers, and of a covariance without full rank."""
    along, power = both_sides(MODELS[name], gaussian_density(MEAN, COVARIANCE))
    assert abs(power) > 1e-2
    assert power == pytest.approx(along, rel=1e-12)
    if name in ("softmax", "l2"):
        along, power = both_sides(MODELS[name], gaussian_density(1e200 * MEAN, COVARIANCE))
        assert power == pytest.approx(along, rel=1e-12)
        along, power = both_sides(MODELS[name], gaussian_density(MEAN, np.diag([1.0, 0.0])))
        assert power == pytest.approx(along, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "owner"), [("softmax", DotProduct), ("l2", SquaredDistance), ("linear", Linear)]
)
def test_a_wrong_slope_breaks_the_identity(name, owner, monkeypatch):
    right = owner.gaussian_field

    def wrong(self, head, mu):
        exact = right(self, head, mu)
        return Affine(exact.offset, 1.05 * exact.slope)

    monkeypatch.setattr(owner, "gaussian_field", wrong)
    along, power = both_sides(MODELS[name], gaussian_density(MEAN, COVARIANCE))
    assert abs(along - power) > 1e-3 * abs(power)


def test_the_size_is_that_of_samples():
    """log(1 + E|x|^2)/2, by the second moment written out."""
    start = gaussian_density(MEAN, COVARIANCE)
    found = start.on.scheme().free_energy(MODELS["softmax"], 0.0, start.state)
    assert float(found) == pytest.approx(np.log(1 + 0.36 + 0.16 + 1.5) / 2, rel=1e-14)


# --- 64 bits --------------------------------------------------------------------------------------


def test_the_coupling_has_64_bits_when_imported_alone():
    code = (
        "from tokenflock.kinds.gaussian_coupling import coupling_slope\n"
        "import jax.numpy as jnp\n"
        "print(coupling_slope(jnp.eye(2), jnp.eye(2)).dtype)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "float64"


def imported(path):
    """Files of the package that importing this one brings in, itself included."""
    found, waiting = set(), [path]
    while waiting:
        here = waiting.pop()
        if here in found or not here.exists():
            continue
        found.add(here)
        for node in ast.parse(here.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = here.parents[node.level - 1]
                base = folder.joinpath(*(node.module or "").split("."))
                names = [base / alias.name for alias in node.names]
                for one in (base, *names):
                    waiting += [one.with_suffix(".py"), one / "__init__.py"]
    return found


MODULES = sorted((PACKAGE / "meanfield").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_that_uses_jax_sets_it_up(path):
    """Whichever is imported first, `runtime` is among what it brings in."""
    if "import jax" in path.read_text():
        assert PACKAGE / "runtime.py" in imported(path)
    assert jnp.zeros(()).dtype == np.float64
