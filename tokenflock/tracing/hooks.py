"""Hooks that stream what happens inside a model without changing a bit of it.

Hidden states come from the layers as they are computed, so that nothing of depth x tokens is kept.
Attention is met where transformers looks its function up: the model's own function is called with the
arguments it would have got, and the listener sees queries, keys and mask beside it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .architecture import Architecture
    from .state_statistics import NormAffine


@dataclass(frozen=True)
class AttentionCall:
    """One call of attention: queries (b, H, n, k), keys and values (b, Hk, n, k), mask, scaling."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    causal: bool
    scaling: float


class Listener:
    """What may be heard; every method does nothing until a listener overrides it."""

    def state(self, index: int, hidden: Tensor, affine: NormAffine | None) -> None:
        """Hidden state number `index`: 0 before the first layer, L at the end.

        `affine` is the gain and bias of the norm it has just left, if it left one.
        """

    def enter(self, layer: int, module: nn.Module) -> None:
        """A layer begins, counted from 1."""

    def attention(self, layer: int, call: AttentionCall) -> None:
        """The attention of a layer, counted from 1."""

    def update(self, layer: int, part: str, residual: Tensor, update: Tensor) -> None:
        """What "attention" or "mlp" adds to the residual in a layer, counted from 1."""

    def finish(self) -> None:
        """A forward pass has ended; everything of it has been told."""


# Arguments by which an attention adds to its scores what queries, keys and mask do not show.
HIDDEN_INPUTS = {
    "softcap": "its scores are soft-capped",
    "position_bias": "its scores carry a position bias",
    "s_aux": "its softmax has learned sinks",
}


@dataclass
class AttentionSeen:
    """What was met: how many calls of attention, whether they were causal, and what could not be read."""

    calls: int = 0
    causal: bool = False
    unread: set[str] = field(default_factory=set)


# Called beside an attention: (call, weigh), where weigh(values) is the attention applied to values.
Beside = Callable[["nn.Module", AttentionCall, Callable[..., Any]], None]


class _Hooks:
    """Counts the passes through the layers and tells the listener."""

    def __init__(self, architecture: Architecture, listener: Listener, last: int):
        self.architecture, self.listener, self.last = architecture, listener, last
        self.seen = AttentionSeen()
        self.layer = self.calls = 0
        self.residual: Tensor | None = None
        family = architecture.family
        self.ends_in_norm = family is not None and bool(
            family.final_norm_model and family.ends_in_norm
        )

    def start(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        """A new forward pass begins."""
        self.layer = self.calls = 0

    def before_layer(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        hidden = args[0] if args else kwargs["hidden_states"]
        if self.layer == 0 and self.architecture.family is not None:
            self.listener.state(0, hidden, self.architecture.first_affine())
        self.layer += 1
        self.listener.enter(self.layer, module)
        self.residual = hidden

    def after_layer(self, module: nn.Module, args: tuple, output: Any) -> None:
        if self.architecture.family is None:
            return
        hidden = output[0] if isinstance(output, tuple) else output
        # The last state of a language model is read after its final norm.
        if self.layer < self.last or not self.ends_in_norm:
            self.listener.state(self.layer, hidden, self.architecture.layer_affine(module))

    def finish(self, module: nn.Module, args: tuple, output: Any) -> None:
        if self.architecture.family is None:
            # Which state is read before and which after a norm only the model knows.
            for index, hidden in enumerate(output.hidden_states or ()):
                self.listener.state(index, hidden, None)
        if self.ends_in_norm:
            hidden = output[0] if isinstance(output, tuple) else output.last_hidden_state
            self.listener.state(self.last, hidden, self.architecture.final_affine())
        self.listener.finish()

    def after_attention(self, module: nn.Module, args: tuple, output: Tensor) -> None:
        assert self.residual is not None
        self.listener.update(self.layer, "attention", self.residual, output)
        if self.architecture.scheme == "pre":
            self.residual = self.residual + output

    def after_attention_norm(self, module: nn.Module, args: tuple, output: Tensor) -> None:
        self.residual = output

    def after_mlp(self, module: nn.Module, args: tuple, output: Tensor) -> None:
        assert self.residual is not None
        self.listener.update(self.layer, "mlp", self.residual, output)


@contextlib.contextmanager
def watching(
    architecture: Architecture,
    listener: Listener,
    beta_scale: float = 1.0,
    beside: Beside | None = None,
) -> Iterator[AttentionSeen]:
    """Tell `listener` of every forward pass inside; scores are multiplied by `beta_scale`.

    Of a family whose parts are not known the states come at the end, from the model's own
    `output_hidden_states=True`, which the caller has to ask for.
    """
    hooks = _Hooks(architecture, listener, architecture.passes)
    with contextlib.ExitStack() as stack:
        for handle in _register(architecture, hooks):
            stack.callback(handle.remove)
        stack.enter_context(_attention_seen(_Watcher(architecture, hooks, beta_scale, beside)))
        yield hooks.seen


@contextlib.contextmanager
def starting_from(architecture: Architecture, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace what enters the first layer, x -> change(x), in every forward pass inside."""
    waiting = [False]

    def arm(module: nn.Module, args: tuple) -> None:
        waiting[0] = True

    def replace(module: nn.Module, args: tuple, kwargs: dict) -> Any:
        if not waiting[0]:
            return None
        waiting[0] = False
        if args:
            return (change(args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": change(kwargs["hidden_states"])}

    with contextlib.ExitStack() as stack:
        stack.callback(architecture.backbone.register_forward_pre_hook(arm).remove)
        for layer in architecture.layers:
            stack.callback(layer.register_forward_pre_hook(replace, with_kwargs=True).remove)
        yield


def _register(architecture: Architecture, hooks: _Hooks) -> Iterator[Any]:
    backbone = architecture.backbone
    yield backbone.register_forward_pre_hook(hooks.start, with_kwargs=True)
    yield backbone.register_forward_hook(hooks.finish)
    for layer in architecture.layers:
        yield layer.register_forward_pre_hook(hooks.before_layer, with_kwargs=True)
        yield layer.register_forward_hook(hooks.after_layer)
        if architecture.family is None:
            continue
        for name, heard in (
            ("attention_update", hooks.after_attention),
            ("attention_norm", hooks.after_attention_norm),
            ("mlp_update", hooks.after_mlp),
        ):
            part = architecture.part(layer, name)
            if part is not None:
                yield part.register_forward_hook(heard)


@dataclass(frozen=True, eq=False)
class _Watcher:
    """What stands beside every attention of one model while it is watched."""

    architecture: Architecture
    hooks: _Hooks
    beta_scale: float
    beside: Beside | None

    def attend(
        self, function: Callable[..., Any], module: Any, tensors: tuple, keywords: dict[str, Any]
    ) -> Any:
        """Call the function as the model would, but for `beta_scale`, and tell what it was given."""
        query, key, value, mask = tensors
        call = _attention_call(module, query, key, value, mask, self.beta_scale, keywords)
        if self.beta_scale != 1.0:
            keywords = {**keywords, "scaling": call.scaling}

        def weigh(values: Tensor) -> Tensor:
            return function(module, query, key, values, mask, **keywords)[0]

        hooks, seen = self.hooks, self.hooks.seen
        hooks.calls += 1
        seen.calls += 1
        seen.causal |= call.causal or _hides_the_future(mask)
        unread = [why for name, why in HIDDEN_INPUTS.items() if keywords.get(name) is not None]
        seen.unread.update(unread)
        if not unread:
            hooks.listener.attention(hooks.layer or hooks.calls, call)
        if self.beside is not None:
            self.beside(module, call, weigh)
        return function(module, query, key, value, mask, **keywords)


# Watchers of each attention module, by its id; transformers' registry is patched while there is one.
_WATCHERS: dict[int, list[_Watcher]] = {}
_LOCK = threading.RLock()


@contextlib.contextmanager
def _attention_seen(watcher: _Watcher) -> Iterator[None]:
    """Stand beside the function that transformers' registry hands to the model's own attention.

    The registry is one for the whole process: other models, also in other threads, pass through.
    """
    modules = [id(part) for part in watcher.architecture.backbone.modules()]
    with _LOCK:
        if not _WATCHERS:
            _patch_registry()
        for module in modules:
            _WATCHERS.setdefault(module, []).append(watcher)
    try:
        yield
    finally:
        with _LOCK:
            for module in modules:
                _WATCHERS[module].remove(watcher)
                if not _WATCHERS[module]:
                    del _WATCHERS[module]
            if not _WATCHERS:
                _restore_registry()


def _patch_registry() -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as registry

    original = registry.get_interface

    def get_interface(attn_implementation: Any, default: Callable[..., Any]) -> Callable[..., Any]:
        function = original(attn_implementation, default)

        def seen(module: Any, query: Any, key: Any, value: Any, mask: Any, **keywords: Any) -> Any:
            attend = function
            for watcher in _WATCHERS.get(id(module), ()):
                attend = _watched(watcher, attend)
            return attend(module, query, key, value, mask, **keywords)

        return seen

    registry.get_interface = get_interface


def _watched(watcher: _Watcher, function: Callable[..., Any]) -> Callable[..., Any]:
    def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, **keywords: Any) -> Any:
        return watcher.attend(function, module, (query, key, value, mask), keywords)

    return attend


def _restore_registry() -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as registry

    del registry.get_interface


def _hides_the_future(mask: Any) -> bool:
    """Whether the first token may not look at the last one."""
    import torch

    if mask is None or mask.shape[-1] < 2:
        return False
    corner = mask.reshape(-1, *mask.shape[-2:])[0, 0, -1]
    return not bool(corner) if mask.dtype == torch.bool else bool(corner < -1e3)


def _attention_call(
    module: Any, query: Any, key: Any, value: Any, mask: Any, beta_scale: float, keywords: dict
) -> AttentionCall:
    given, scaling = keywords.get("is_causal"), keywords.get("scaling")
    causal = getattr(module, "is_causal", True) if given is None else given
    return AttentionCall(
        query,
        key,
        value,
        mask,
        bool(causal) and mask is None and query.shape[2] > 1,
        beta_scale * (query.shape[-1] ** -0.5 if scaling is None else float(scaling)),
    )
