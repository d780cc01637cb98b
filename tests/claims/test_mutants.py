"""A wrong engine must not pass: each mutant of the SA field is caught by the ledger.

A mutant is the installed library with one line changed, checked in a process of its own.
"""

import subprocess
import sys
import textwrap

import pytest

from tokenflock.claims import all_claims

PRELUDE = """
import os
os.environ["EQX_ON_ERROR"] = "nan"
import jax.numpy as jnp
import tokenflock.kinds as kinds
import tokenflock.space as space
{mutation}
from tokenflock.claims import all_claims
from tokenflock.claims.examine import examine
for claim in all_claims():
    try:
        verdict = examine(claim).verdict
    except Exception as error:
        verdict = type(error).__name__
    print(claim.id, verdict, flush=True)
"""


def caught(mutation: str) -> list[str]:
    """The claims that do not hold with the mutation in place."""
    script = PRELUDE.format(mutation=textwrap.dedent(mutation))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    verdicts = dict(line.split() for line in done.stdout.splitlines())
    assert verdicts.keys() == {claim.id for claim in all_claims()}
    return [name for name, verdict in verdicts.items() if verdict != "holds"]


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
# A wrong sign contradicts nearly every statement about clustering.
FEWEST = {"the sign of attention is flipped": 10}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name):
    assert len(caught(MUTANTS[name])) >= FEWEST.get(name, 1)
