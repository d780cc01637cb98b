"""Interventions: the same checkpoint with a part taken out, changed, looped, or started elsewhere.

Each is undone when the context ends; the weights themselves are never touched.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError, require
from .hooks import AttentionCall, AttentionSeen, Listener, starting_from, watching

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .architecture import Architecture

Swap = Literal["none", "identity"]
Start = Literal["text", "random", "permuted"]
LARGEST_REPEAT = 10_000


@dataclass(frozen=True)
class Interventions:
    """What is changed; the defaults change nothing.

    mlp, attention: False takes the part's update out of every layer (the norms stay).
    repeat: the whole stack, or the shared layer, K times over.
    beta_scale: every attention score is multiplied by it (inverse temperature).
    swap_values: "identity" lets attention move tokens by the plain average of what they attend to,
        (1/H) sum_h sum_j A^h_ij x_j with x the input of the attention, in place of the values' map.
    start: "random" starts at Gaussian directions with each token's own norm; "permuted" shuffles the
        tokens of the text, special ones aside, while positions stay.
    """

    mlp: bool = True
    attention: bool = True
    repeat: int = 1
    beta_scale: float = 1.0
    swap_values: Swap = "none"
    start: Start = "text"
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            isinstance(self.repeat, int) and 1 <= self.repeat <= LARGEST_REPEAT,
            f"repeat must be a whole number from 1 to {LARGEST_REPEAT}, got {self.repeat!r}",
        )
        require(
            0 <= self.beta_scale < float("inf"),
            f"beta-scale must be a finite number >= 0, got {self.beta_scale}",
        )
        for name, known in (("swap_values", Swap), ("start", Start)):
            given, choices = getattr(self, name), known.__args__
            require(
                given in choices,
                f"{name.replace('_', '-')} must be one of {', '.join(choices)}, got {given!r}",
            )
        require(
            isinstance(self.seed, int) and 0 <= self.seed < 2**63,
            f"the seed must be a whole number from 0 to 2^63 - 1, got {self.seed!r}",
        )
        require(
            self.attention or self.swap_values == "none",
            "swap-values changes what attention moves, and no-attention takes it out; choose one",
        )

    def changed(self) -> dict[str, Any]:
        """The settings that differ from the model as trained."""
        plain = asdict(Interventions())
        given = {name: value for name, value in asdict(self).items() if value != plain[name]}
        if "start" not in given:
            given.pop("seed", None)
        return given

    def sentences(self) -> list[str]:
        """What is run outside the training regime, in words."""
        said = {
            "mlp": "the feed-forward block is taken out of every layer",
            "attention": "attention is taken out of every layer (its statistics are of what it would do)",
            "repeat": f"the stack is run {self.repeat} times over",
            "beta_scale": f"attention scores are multiplied by {self.beta_scale:g}",
            "swap_values": "attention moves tokens by plain averages: V is the identity, and the "
            "spectra are of value maps that are not in use",
            "start": f"the start is {self.start} (seed {self.seed})",
        }
        return [
            f"outside the training regime: {said[name]}" for name in self.changed() if name in said
        ]


@contextlib.contextmanager
def intervened(
    architecture: Architecture,
    what: Interventions,
    listener: Listener,
    moved: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[AttentionSeen]:
    """The model with the interventions in place, telling `listener` of every forward pass.

    `moved` changes what enters the first layer once more, after the start has been chosen.
    """
    _require_parts(architecture, what)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_repeated(architecture, what.repeat))
        if what.start == "random":
            change = functools.partial(_same_norms, seed=what.seed)
            stack.enter_context(starting_from(architecture, change))
        if moved is not None:
            stack.enter_context(starting_from(architecture, moved))
        for name, kept in (("attention_update", what.attention), ("mlp_update", what.mlp)):
            if not kept:
                _hook_parts(stack, architecture, name, lambda module, args, output: output * 0)
        beside = _identity_values(stack, architecture) if what.swap_values == "identity" else None
        watch = watching(architecture, listener, what.beta_scale, beside)
        yield stack.enter_context(watch)


def _require_parts(architecture: Architecture, what: Interventions) -> None:
    """Parts must be known before they can be taken out."""
    needs = [
        flag
        for flag, wanted in (
            ("--no-mlp", not what.mlp),
            ("--no-attention", not what.attention),
            ("--swap-values", what.swap_values != "none"),
        )
        if wanted
    ]
    require(
        not needs or architecture.family is not None,
        f"{' and '.join(needs)} need to know the parts of a layer, and {architecture.kind} is not a family "
        "whose parts are known; --repeat, --beta-scale and --start work without",
    )


def _hook_parts(
    stack: contextlib.ExitStack, architecture: Architecture, name: str, hook: Callable[..., Any]
) -> None:
    for layer in architecture.layers:
        part = architecture.part(layer, name)
        assert part is not None
        stack.callback(part.register_forward_hook(hook).remove)


@contextlib.contextmanager
def _repeated(architecture: Architecture, times: int) -> Iterator[None]:
    """Loop the stack: the list of layers is replaced by itself, K times over."""
    if times == 1:
        yield
        return
    from torch import nn

    config, homes = architecture.config, []
    if len(architecture.layers) > 1:  # a single shared layer is looped by the count alone
        homes = _homes(architecture)
    before = {"num_hidden_layers": config.num_hidden_layers}
    changed = {"num_hidden_layers": config.num_hidden_layers * times}
    if getattr(config, "layer_types", None) is not None:
        before["layer_types"] = config.layer_types
        changed["layer_types"] = [*config.layer_types] * times
    try:
        for name, value in changed.items():
            setattr(config, name, value)
        for parent, name, layers in homes:
            setattr(parent, name, nn.ModuleList([*layers] * times))
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
        for parent, name, layers in homes:
            setattr(parent, name, layers)


def _homes(architecture: Architecture) -> list[tuple[Any, str, Any]]:
    """Where the list of layers is kept; a shared layer is looped by its count alone."""
    from torch import nn

    grouped = architecture.config.num_hidden_layers != len(architecture.layers)
    for parent in architecture.backbone.modules():
        for name, child in parent.named_children():
            if (
                isinstance(child, nn.ModuleList)
                and tuple(child) == architecture.layers
                and not grouped
            ):
                return [(parent, name, child)]
    raise InputError(
        f"--repeat loops one list of layers, or one shared layer; this {architecture.kind} has "
        f"{len(architecture.layers)} layers in groups"
    )


def _same_norms(hidden: Tensor, seed: int) -> Tensor:
    """Gaussian directions, each with the norm of the token it replaces."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    # One draw for the whole batch: copies of a text start alike.
    noise = torch.randn(hidden.shape[1:], generator=generator, dtype=torch.float64)
    noise = noise / noise.norm(dim=-1, keepdim=True)
    return (noise.to(hidden.device) * hidden.double().norm(dim=-1, keepdim=True)).to(hidden.dtype)


def _identity_values(
    stack: contextlib.ExitStack, architecture: Architecture
) -> Callable[..., None]:
    """Keep the input of each attention, average it by the attention, and put that in place."""
    kept: dict[str, Any] = {}

    def keep(module: nn.Module, args: tuple, kwargs: dict) -> None:
        kept["input"] = args[0] if args else kwargs["hidden_states"]

    for layer in architecture.layers:
        attention = architecture.part(layer, "attention")
        assert attention is not None
        handle = attention.register_forward_pre_hook(keep, with_kwargs=True)
        stack.callback(handle.remove)

    def put(module: nn.Module, args: tuple, output: Tensor) -> Tensor:
        if "average" not in kept:
            raise InputError(
                f"--swap-values reaches attention through transformers' registry of attention "
                f"functions, and this {architecture.kind} computes its own"
            )
        return kept["average"]

    _hook_parts(stack, architecture, "attention_update", put)

    def beside(module: nn.Module, call: AttentionCall, weigh: Callable[[Tensor], Tensor]) -> None:
        kept["average"] = _averaged(kept["input"], call, weigh)

    return beside


def _averaged(tokens: Tensor, call: AttentionCall, weigh: Callable[[Tensor], Tensor]) -> Tensor:
    """(1/H) sum_h A^h x, in slices as wide as a head, so that memory stays O(H n k)."""
    import torch

    groups, size = call.value.shape[1], call.value.shape[-1]
    parts = []
    for piece in tokens.split(size, dim=-1):
        short = size - piece.shape[-1]
        padded = torch.nn.functional.pad(piece, (0, short)) if short else piece
        values = padded[:, None].expand(-1, groups, -1, -1).contiguous()
        parts.append(weigh(values).mean(dim=2)[..., : piece.shape[-1]])
    return torch.cat(parts, dim=-1)
