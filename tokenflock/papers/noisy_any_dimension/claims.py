"""2606.05140: when noise gives way to order continuously, and when by a jump, on S^{d-1}."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ... import theory
from ...density import Density
from ...dynamics import Dynamics
from ...ledger.branches import curvature, order, whole_branch
from ...ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ...ledger.measure import KINDS, MODELS
from ...meanfield.galerkin import Galerkin
from ...meanfield.laws import uniform
from ...meanfield.stationary import stability
from ...meanfield.zonal import Zonal
from ...noise import Brownian
from . import PAPER

USA_ONLY = {"the model is USA": lambda c: c.model == "USA"}
EITHER = {"model": ("SA", "USA")}
ABSTRACT = "Known from the abstract; K = 1/(2T) there, T the factor of the Laplacian."


@PAPER.claim(
    "linear-threshold",
    where="abstract",
    says="The uniform state loses linear stability at K_# = beta^{d/2}/(2^{d/2} Gamma(d/2) I_{d/2}(beta)).",
    given={"d": 3, "beta": 2.0, "size": 16, "model": "USA"},
    at_paper_scale={"d": 16, "beta": 6.0, "size": 32},
    options=EITHER,
    needs=USA_ONLY,
    control=broken("SA divides the attraction by Z", model="SA"),
    note=ABSTRACT,
)
def linear_threshold(case: Case) -> list[Comparison]:
    """K at which the largest rate of the linearised equation vanishes.

    Growth of degree 1 is affine in T, so that two temperatures give the root, to rounding.
    """
    on = Zonal(case.d, case.size)
    still = Density.from_law(on, uniform())
    warm = 1 / (2 * theory.critical_coupling(case.d, case.beta))
    temperatures = warm * np.array([0.98, 1.0])
    model = MODELS[case.model]
    rates = [stability(model(case.beta, noise=Brownian(t)), still).growth for t in temperatures]
    root = temperatures[1] - rates[1] * (temperatures[1] - temperatures[0]) / (rates[1] - rates[0])
    return [equals("K_# over its formula", warm / root, 1.0, 1e-9)]


@PAPER.claim(
    "continuous",
    where="abstract",
    says="For beta <= beta_*, the root of I_{d/2+1}/I_{d/2} = 1/d, no ordered state lies above the linear "
    "threshold: order sets in continuously.",
    given={"d": 3, "ratio": 0.9, "size": 32},
    at_paper_scale={"d": 8, "size": 48},
    needs={"beta <= beta_*": lambda c: c.ratio <= 1},
    control=broken("at 1.3 beta_* the branch goes to warmer temperatures first", ratio=1.3),
    note=f"{ABSTRACT} beta = ratio beta_*. Checked on the branch of axially symmetric states from the "
    "threshold; that no other state has more free energy is what the paper proves.",
)
def continuous(case: Case) -> list[Comparison]:
    """The warmest point of the branch, its order next to the threshold, folds, and free energy."""
    beta = case.ratio * float(theory.continuity_beta(case.d))
    found, start = whole_branch(case, case.d, beta)
    return [
        at_most(
            "warmest temperature of ordered states over T_1", found.temperatures.max() / start, 1.0
        ),
        equals("number of folds", len(found.folds()), 0.0, 0.0),
        at_least("advantage in free energy of ordered states", found.advantages.min(), 0.0),
    ]


@PAPER.claim(
    "discontinuous",
    where="abstract",
    says="For beta > beta_* an ordered state has more free energy than the uniform one already at a "
    "coupling K_c < K_#: order sets in by a jump.",
    given={"d": 3, "ratio": 1.5, "size": 32},
    at_paper_scale={"d": 2, "ratio": 1.6, "size": 64},
    needs={"beta > beta_*": lambda c: c.ratio > 1},
    control=broken("at 0.9 beta_* no ordered state is preferred before K_#", ratio=0.9),
    note=f"{ABSTRACT} beta = ratio beta_*. K_c is where the free energies cross on the branch of axially "
    "symmetric states.",
)
def discontinuous(case: Case) -> list[Comparison]:
    """K_c/K_#, the fold beyond it, and the order of the state that takes over."""
    beta = case.ratio * float(theory.continuity_beta(case.d))
    found, start = whole_branch(case, case.d, beta)
    crossings, folds = found.first_order_points(), found.folds()
    # Without a crossing: the warmest ordered state with more free energy than the uniform one.
    first = crossings[-1] if crossings else found.temperatures[found.advantages > 0].max()
    fold = folds[0] if folds else found.temperatures.max()
    # At its very end a branch may be crossed by no temperature; order grows from 0 there.
    jump = max((order(state) for state in found.at(first)), default=0.0)
    return [
        at_most("K_c/K_#", start / first, 1.0, -1e-4),
        at_least("temperature of the fold over that of the jump", fold / first, 1.0),
        at_least("order parameter right after the jump", jump, 0.3),
    ]


@PAPER.claim(
    "quartic-obstruction",
    where="abstract (degree-two quartic obstruction)",
    says="The branch of ordered states leaves the threshold neither towards warmer nor colder "
    "temperatures exactly at beta_*, and its curvature is explicit.",
    given={"d": 3, "ratio": 1.0, "size": 16, "model": "USA"},
    at_paper_scale={"d": 8},
    options=EITHER,
    needs={**USA_ONLY, "beta = beta_*": lambda c: c.ratio == 1},
    control=broken("twice beta_* the branch leaves towards warmer temperatures", ratio=2.0),
    note="The curvature is derived here (theory.pitchfork_curvature); its sign agrees with the abstract.",
)
def quartic_obstruction(case: Case) -> list[Comparison]:
    """(T/T_1 - 1)/r^2 as r -> 0, from two points of the branch; what is left is of order r^4."""
    beta = case.ratio * float(theory.continuity_beta(case.d))
    measured = curvature(case, case.d, beta)
    return [
        equals("curvature of the branch at beta_*", measured, 0.0, 1e-4),
        equals(
            "curvature against its formula",
            measured,
            theory.pitchfork_curvature(case.d, beta, KINDS[case.model]),
            1e-4,
        ),
    ]


@PAPER.claim(
    "free-energy",
    where="the free energy (abstract); its gradient flow is classical",
    says="Noisy USA is the gradient flow of its free energy: E - T int rho log rho never falls.",
    given={
        "d": 3,
        "beta": 2.0,
        "warmth": 1.1,
        "width": 3.0,
        "draws": 8,
        "size": 32,
        "model": "USA",
    },
    at_paper_scale={"d": 8, "draws": 64},
    options=EITHER,
    needs=USA_ONLY,
    control=broken(
        "noisy SA is no gradient flow of it: a sharp density spreads and loses it", model="SA"
    ),
    note="T = warmth T_1 of the model. Laws e^{width u + random waves} of u = <x, e_1>.",
)
def free_energy(case: Case) -> list[Comparison]:
    """dA/dt by the chain rule at random densities, over T: positive, and int rho |v - T grad log rho|^2."""
    on = Zonal(case.d, case.size)
    warmth = case.warmth * float(
        theory.critical_temperature(1, case.d, case.beta, KINDS[case.model])
    )
    model = MODELS[case.model](case.beta, noise=Brownian(warmth))
    random = np.random.default_rng(case.seed)
    waves = jnp.asarray(random.normal(size=(case.draws, 3)) / 4)
    laws = [
        Density.from_law(on, lambda x, a=a: jnp.exp(case.width * x[:, 0] + _waves(a, x[:, 0])))
        for a in waves
    ]
    scheme = on.scheme().prepared(model)
    rates = _rates(scheme, model, jnp.stack([law.state for law in laws]))
    changes, squares = np.asarray(rates) / warmth
    return [
        at_least("dA/dt over T", changes, 0.0),
        equals("dA/dt against int rho |v - T grad log rho|^2", changes / squares, 1.0, 1e-6),
    ]


def _waves(amplitudes: Array, u: Array) -> Array:
    return amplitudes[0] * jnp.sin(3 * u) + amplitudes[1] * u**2 + amplitudes[2] * jnp.cos(4 * u)


@eqx.filter_jit
def _rates(scheme: Galerkin, model: Dynamics, states: Array) -> tuple[Array, Array]:
    """dA/dt along the equation, and int rho |v - T grad log rho|^2, at every state."""
    warmth = model.temperature()
    assert warmth is not None

    def one(state: Array) -> tuple[Array, Array]:
        damping = scheme.damping(model)
        assert damping is not None
        motion = scheme.transport(model, 0.0, state) - damping * state
        _, change = jax.jvp(lambda c: scheme.free_energy(model, 0.0, c), (state,), (motion,))
        density = scheme.basis.synthesise(state)
        flux = density[:, None] * scheme.field(model, 0.0, state, density)
        flux -= warmth * scheme.basis.gradient(state)
        return change, jnp.sum(scheme.basis.weights * jnp.sum(flux**2, axis=-1) / density)

    return jax.vmap(one)(states)
