"""A wrong engine must not pass: each mutant of the attention field is caught by the ledger.

A mutant is the library with one method replaced, checked in a process of its own.
"""

import subprocess
import sys
import textwrap

import pytest

# The ledger is gone through until enough claims fail.
SCRIPT = """
import os
os.environ["EQX_ON_ERROR"] = "nan"
import jax.numpy as jnp
import tokenflock.kinds as kinds
import tokenflock.space as space
{mutation}
from tokenflock.ledger import find_paper
from tokenflock.ledger.examine import examine
caught = 0
for claim in find_paper("2312.10794").claims:
    try:
        caught += examine(claim).verdict == "fails"
    except Exception:
        continue  # a mutant may break a measurement altogether; only refutations are counted
    if caught >= {enough}:
        break
print(caught)
"""
MUTANTS = {
    "the sign of attention is flipped": """
        right = kinds.Softmax.finish
        kinds.Softmax.finish = lambda self, carry, beta: -right(self, carry, beta)
    """,
    "the projection on the tangent space is dropped": """
        space.Sphere.project = lambda self, x, v: v
    """,
    "the max-shift of the softmax is dropped": """
        def absorb(self, carry, scores, log_mass, values, beta, keep):
            kernel = jnp.exp(scores + log_mass)
            partition = carry[1] + jnp.sum(kernel, axis=-1, keepdims=True)
            return (carry[0], partition, carry[2] + (kernel * keep) @ values)

        kinds.Softmax.absorb = absorb
    """,
    "attention is divided by n instead of Z": """
        kinds.Softmax.finish = lambda self, carry, beta: jnp.exp(carry[0]) * carry[2]
    """,
}
# A wrong sign contradicts nearly every statement about clustering; an overflow mostly breaks runs off.
ENOUGH = {
    "the sign of attention is flipped": 10,
    "the max-shift of the softmax is dropped": 1,
}


def failures(mutation: str, enough: int) -> int:
    """How many claims fail with the mutation in place, up to `enough`."""
    script = SCRIPT.format(mutation=textwrap.dedent(mutation), enough=enough)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name):
    enough = ENOUGH.get(name, 3)
    assert failures(MUTANTS[name], enough) == enough
