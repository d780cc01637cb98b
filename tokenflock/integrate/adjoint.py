"""One solve, every derivative: each direction of differentiation gets the loop that is fast for it.

diffrax has a loop for values and forward derivatives (`ForwardMode`), one for reverse derivatives
(`RecursiveCheckpointAdjoint`), and a slow one that can do everything (`DirectAdjoint`). Nobody can know
inside jax.jit which one a user will need, so the solve is a primitive of JAX with its own rules:

    value           y = f(p)              ForwardMode
    tangent         y' = Df(p) p'         ForwardMode, linear in p'
    cotangent       p* = Df(p)^T y*       the caller's choice: the transpose of the tangent
    second order    D of the two above    DirectAdjoint

The choice (reverse.py) is by default RecursiveCheckpointAdjoint; `Direct` does without this primitive.

Discretise, then differentiate: every derivative is that of the steps that were made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.interpreters.ad import UndefinedPrimal

from .unchecked import unchecked

VALUE = diffrax.ForwardMode()
EVERYTHING = diffrax.DirectAdjoint()
# The loop over the stages of a Runge-Kutta step must be of the same sort as that over the steps.
STAGES = {
    diffrax.ForwardMode: "lax",
    diffrax.RecursiveCheckpointAdjoint: None,
    diffrax.DirectAdjoint: "bounded",
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A solve as a function of its loop and its arguments, and the loop that goes back through it."""

    function: Callable[..., Any]
    reverse: diffrax.AbstractAdjoint

    def __call__(self, adjoint: diffrax.AbstractAdjoint, *arguments: Any) -> Any:
        return self.function(adjoint, *arguments)


def differentiable(
    function: Callable[..., Any], reverse: diffrax.AbstractAdjoint, *arguments: Any
) -> Any:
    """function(adjoint, *arguments), with derivatives of every order and direction in the arguments.

    `reverse` is the loop of reverse derivatives of first order.
    """
    return eqxi.filter_primitive_bind(_solve_p, Run(function, reverse), arguments)


def with_stages_for(solver: Any, adjoint: diffrax.AbstractAdjoint) -> Any:
    """The solver, alone or wrapped, with the loop over its stages that an adjoint needs."""
    if hasattr(solver, "solver"):
        inner = with_stages_for(solver.solver, adjoint)
        return eqx.tree_at(lambda wrapped: wrapped.solver, solver, inner)
    if not hasattr(solver, "scan_kind"):
        return solver
    stages = STAGES[type(adjoint)]
    return eqx.tree_at(lambda s: s.scan_kind, solver, stages, is_leaf=lambda leaf: leaf is None)


# Compiled once more inside the primitives, whose shapes and programs then share one trace.
@eqx.filter_jit
def _value(run: Run, arguments: Any) -> Any:
    with unchecked():
        return run(VALUE, *arguments)


@eqx.filter_jit
def _tangent(
    run: Run, arguments: Any, tangents: Any, adjoint: diffrax.AbstractAdjoint = VALUE
) -> Any:
    """Df(p) p', with a number for every real number of the value."""
    with unchecked():
        value, change = eqx.filter_jvp(lambda *given: run(adjoint, *given), arguments, tangents)
    return jax.tree.map(
        eqxi.materialise_zeros, *(_real(part) for part in (value, change)), is_leaf=_is_none
    )


@eqx.filter_jit
def _cotangent(
    run: Run,
    arguments: Any,
    moving: Any,
    cotangents: Any,
    adjoint: diffrax.AbstractAdjoint | None = None,
) -> Any:
    """Df(p)^T y* for the leaves of p that `moving` marks; by default through the run's own loop."""
    loop = run.reverse if adjoint is None else adjoint
    moved, rest = eqx.partition(arguments, moving)
    with unchecked():
        value, pull = eqx.filter_vjp(lambda some: _real(run(loop, *eqx.combine(some, rest))), moved)
        filled = jax.tree.map(eqxi.materialise_zeros, value, cotangents, is_leaf=_is_none)
        return pull(filled)[0]


def _real(tree: Any) -> Any:
    return eqx.filter(tree, eqx.is_inexact_array)


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _shapes(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The shapes of what a rule returns, as a primitive states them."""

    def abstract(*arguments: Any) -> Any:
        # JAX lowers within an explicit mesh, if an empty one; a trace is found again only in the same.
        with jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh()):
            shapes = eqx.filter_eval_shape(rule, *jax.tree.map(_struct, arguments))
        return jax.tree.map(_aval, shapes)

    return eqxi.filter_primitive_def(abstract)


def _struct(leaf: Any) -> Any:
    if isinstance(leaf, ShapedArray):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
    return leaf


def _aval(leaf: Any) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
    return leaf


@eqxi.filter_primitive_jvp
def _solve_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    run, arguments = primals
    value = eqxi.filter_primitive_bind(_solve_p, run, arguments)
    change = eqxi.filter_primitive_bind(_tangent_p, run, arguments, tangents[1])
    return value, change


@eqxi.filter_primitive_jvp
def _tangent_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    run, arguments, directions = primals
    _, moved, turned = tangents
    value = eqxi.filter_primitive_bind(_tangent_p, run, arguments, directions)
    change = jax.tree.map(lambda leaf: None, value)
    if jax.tree.leaves(turned):
        change = eqxi.filter_primitive_bind(_tangent_p, run, arguments, turned)
    if jax.tree.leaves(moved):
        bent = eqx.filter_jvp(
            lambda given: _tangent(run, given, directions, EVERYTHING), (arguments,), (moved,)
        )[1]
        change = _add(change, bent)
    return value, change


@eqxi.filter_primitive_transpose
def _tangent_transpose(inputs: Any, cotangents: Any) -> Any:
    run, arguments, directions = inputs
    moving = jax.tree.map(_is_undefined, directions, is_leaf=_is_undefined_or_none)
    pulled = eqxi.filter_primitive_bind(_cotangent_p, run, arguments, moving, cotangents)
    return None, jax.tree.map(lambda leaf: None, arguments), pulled


@eqxi.filter_primitive_jvp
def _cotangent_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    run, arguments, moving, cotangents = primals
    _, moved, _, turned = tangents
    value = eqxi.filter_primitive_bind(_cotangent_p, run, arguments, moving, cotangents)
    change = jax.tree.map(lambda leaf: None, value)
    if jax.tree.leaves(turned):
        change = eqxi.filter_primitive_bind(_cotangent_p, run, arguments, moving, turned)
    if jax.tree.leaves(moved):
        bent = eqx.filter_jvp(
            lambda given: _cotangent(run, given, moving, cotangents, EVERYTHING),
            (arguments,),
            (moved,),
        )[1]
        change = _add(change, bent)
    return value, change


@eqxi.filter_primitive_transpose
def _cotangent_transpose(inputs: Any, twice: Any) -> Any:
    """The transpose of the transpose: the tangent again."""
    run, arguments, moving, cotangents = inputs
    pushed = eqxi.filter_primitive_bind(_tangent_p, run, arguments, twice)
    wanted = jax.tree.map(_is_undefined, cotangents, is_leaf=_is_undefined_or_none)
    kept = jax.tree.map(
        lambda wants, leaf: leaf if wants else None, wanted, pushed, is_leaf=_is_none
    )
    nothing = [jax.tree.map(lambda leaf: None, tree) for tree in (arguments, moving)]
    return None, *nothing, kept


def _is_undefined(leaf: Any) -> bool:
    return isinstance(leaf, UndefinedPrimal)


def _is_undefined_or_none(leaf: Any) -> bool:
    return leaf is None or _is_undefined(leaf)


def _add(one: Any, other: Any) -> Any:
    def add(a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else jnp.add(a, b)

    return jax.tree.map(add, one, other, is_leaf=_is_none)


def _no_transpose(*arguments: Any, **parameters: Any) -> Any:
    raise NotImplementedError("a solve is not linear in its arguments")


_solve_p = eqxi.create_vprim(
    "tokenflock_solve",
    eqxi.filter_primitive_def(_value),
    _shapes(_value),
    _solve_jvp,
    _no_transpose,
)
_tangent_p = eqxi.create_vprim(
    "tokenflock_tangent",
    eqxi.filter_primitive_def(_tangent),
    _shapes(_tangent),
    _tangent_jvp,
    _tangent_transpose,
)
_cotangent_p = eqxi.create_vprim(
    "tokenflock_cotangent",
    eqxi.filter_primitive_def(_cotangent),
    _shapes(_cotangent),
    _cotangent_jvp,
    _cotangent_transpose,
)
