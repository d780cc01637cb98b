"""Conformance of a mask."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..kinds import Sigmoid, Softmax
from ..masks import Mask
from ..reduce import GpuKernel, Reduction, Spectral, Tiled
from ..space import Sphere
from ..terms import Attention
from .samples import BETA, field_at_tokens, tokens
from .suite import Findings, Suite, close

N = 11


def check_mask(mask: Mask) -> Findings:
    """What a mask says of its order, and that every reduction that takes it sums alike."""
    suite = Suite(mask)
    suite.run("blocks are parts of the whole", lambda: _blocks(mask))
    suite.run("sees_all", lambda: _sees_all(mask))
    suite.run("sees_itself", lambda: _sees_itself(mask))
    suite.run("needs_order hides later tokens", lambda: _hides(mask))
    suite.run("causal masks decay as they say", lambda: _decays(mask))
    suite.run("Tiled", lambda: _reduced(mask, Tiled(4), 1e-12))
    suite.run("Spectral", lambda: _reduced(mask, Spectral(1e-8), 1e-8))
    suite.run("GpuKernel", lambda: _reduced(mask, GpuKernel(interpret=True), 1e-4))
    return suite.findings


def _log_factors(mask: Mask) -> Array:
    places = jnp.arange(N)
    found = mask.log_factor(places, places, N)
    return jnp.zeros((N, N)) if found is None else found


def _blocks(mask: Mask) -> None:
    rows, columns = jnp.asarray([2, 7, 9]), jnp.asarray([0, 3, 8, 10])
    part = mask.log_factor(rows, columns, N)
    if part is None:
        return
    whole = np.exp(np.asarray(_log_factors(mask)))
    close(np.exp(np.asarray(part)), whole[np.ix_(rows, columns)], 1e-14, "a block of factors")


def _sees_all(mask: Mask) -> None:
    if mask.sees_all:
        assert bool(jnp.all(_log_factors(mask) == 0)), "a mask that sees all hides or weighs tokens"


def _sees_itself(mask: Mask) -> None:
    if mask.sees_itself:
        assert bool(jnp.all(jnp.diag(_log_factors(mask)) == 0)), "a token does not see itself"


def _hides(mask: Mask) -> None:
    later = np.triu(np.ones((N, N), bool), 1)
    seen = np.asarray(_log_factors(mask))[later] > -np.inf
    if mask.needs_order:
        assert not seen.any(), (
            "a mask that needs the order shows later tokens: blocks of them are left out"
        )


def _decays(mask: Mask) -> None:
    if not mask.causal:
        return
    rate = 0.0 if mask.decay is None else float(mask.decay)
    gap = np.arange(N)[:, None] - np.arange(N)
    visible = gap >= (0 if mask.sees_itself else 1)
    wanted = np.where(visible, np.exp(-rate * gap / N), 0.0)
    close(np.exp(np.asarray(_log_factors(mask))), wanted, 1e-13, "the factors of a causal mask")


def _reduced(mask: Mask, reduction: Reduction, tolerance: float) -> None:
    mu = tokens(Sphere(3), N)
    kinds = (Softmax(),) if isinstance(reduction, GpuKernel) else (Softmax(), Sigmoid(0.2))
    for kind in kinds:
        term = Attention(None, BETA, kind, mask)
        settled = reduction.settle([term.task(mu)])
        found = field_at_tokens(term, mu, settled)
        close(found, field_at_tokens(term, mu), tolerance, f"with {kind.name}")
