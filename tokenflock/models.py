"""The named models of the papers, each a `Dynamics` assembled from slots."""

from __future__ import annotations

from .dynamics import Dynamics
from .errors import require
from .frame import Rescaled
from .kinds import L2 as l2_kind
from .kinds import (
    Convention,
    Hardmax,
    Interaction,
    Kernel,
    Linear,
    Sigmoid,
    Sinkhorn,
    Softmax,
    Unnormalised,
    as_function,
)
from .masks import ALiBi, Causal, Mask
from .noise import Brownian, CommonNoise, Noise
from .normalisation import Normalisation
from .runtime import ArrayLike, is_traced
from .schedule import Schedule
from .terms import Attention, Drift, Term

# e^{-700} and e^{700} are doubles, with some room for sums.
STEEPEST = 700.0


def SA(
    beta: ArrayLike | Schedule,
    weights: Schedule | None = None,
    mask: Mask | None = None,
    normalisation: Normalisation | None = None,
    noise: Noise | None = None,
    plus: Term | None = None,
) -> Dynamics:
    """Self-attention x_i' = P_{x_i}( sum_j softmax_j(beta <Q x_i, K x_j>) V x_j ) (2312.10794)."""
    return _model("SA", Attention(weights, beta, Softmax(), mask), plus, normalisation, noise)


def USA(
    beta: ArrayLike | Schedule,
    convention: Convention = "perspective",
    weights: Schedule | None = None,
    mask: Mask | None = None,
    normalisation: Normalisation | None = None,
    noise: Noise | None = None,
    plus: Term | None = None,
) -> Dynamics:
    """Unnormalised self-attention x_i' = P_{x_i}( (1/n) sum_j e^{beta <x_i, x_j>} x_j ).

    `convention="metastability"` divides time by e^beta (2410.06833); see `Unnormalised`.
    """
    attention = Attention(weights, beta, Unnormalised(convention), mask)
    return _model("USA", attention, plus, normalisation, noise)


def CausalSA(
    beta: ArrayLike | Schedule,
    weights: Schedule | None = None,
    self_term: bool = True,
    slope: float | None = None,
) -> Dynamics:
    """Causal self-attention: token k sees j <= k (2411.04990); `slope` adds the ALiBi bias."""
    mask = Causal(self_term) if slope is None else ALiBi(slope, self_term)
    return _model("CausalSA", Attention(weights, beta, Softmax(), mask))


def KineticFlow(beta: ArrayLike | Schedule, slope: float = 0.0) -> Dynamics:
    """theta_j' = Z_j^{-1} sum_{k<j} e^{-slope (j-k)/n} w'(theta_j - theta_k) (2605.09213).

    w = e^{beta cos}; no self term, so the first token rests. |slope| <= 700: then no weight leaves the range
    of doubles, however few tokens there are.
    """
    require(
        is_traced(slope) or abs(float(slope)) <= STEEPEST,
        f"KineticFlow needs a slope between -{STEEPEST:g} and {STEEPEST:g}, got {slope}: weights "
        "e^{-slope (j-k)/n} of short prompts leave the range of doubles beyond; use a smaller one, or, for "
        f"prompts of more than slope/{STEEPEST:g} tokens, the slots themselves: Attention(None, beta, "
        "Unnormalised('kinetic'), ALiBi(slope, self_term=False))",
    )
    attention = Attention(None, beta, Unnormalised("kinetic"), ALiBi(slope, self_term=False))
    return _model("KineticFlow", attention)


def SinkhornSA(beta: ArrayLike | Schedule, weights: Schedule | None = None) -> Dynamics:
    """Doubly stochastic attention (2110.11773)."""
    return _model("SinkhornSA", Attention(weights, beta, Sinkhorn()))


def L2SA(beta: ArrayLike | Schedule, weights: Schedule | None = None) -> Dynamics:
    """Softmax of -beta |Q x - K y|^2 (2501.18322)."""
    return _model("L2SA", Attention(weights, beta, l2_kind()))


def SigmoidSA(
    beta: ArrayLike | Schedule, bias: float = 0.0, weights: Schedule | None = None
) -> Dynamics:
    """x_i' = P ( (1/n) sum_j sigmoid(beta <Q x_i, K x_j> + bias) V x_j )."""
    return _model("SigmoidSA", Attention(weights, beta, Sigmoid(bias)))


def LinearSA(beta: ArrayLike | Schedule = 1.0, weights: Schedule | None = None) -> Dynamics:
    """x_i' = P ( (1/n) sum_j beta <Q x_i, K x_j> V x_j )."""
    return _model("LinearSA", Attention(weights, beta, Linear()))


def KernelFlow(phi: Interaction, weights: Schedule | None = None) -> Dynamics:
    """Gradient ascent of (1/2) int int phi(<x, y>) dmu dmu, for any smooth phi (2405.18273).

    `phi` is a scalar JAX function or the coefficients c_0, c_1, ... of a polynomial.
    """
    return _model("KernelFlow", Attention(weights, 1.0, Kernel(as_function(phi))))


def HardmaxFlow(weights: Schedule | None = None) -> Dynamics:
    """z_i' = mean of {z_j : j in argmax_j <A z_i, z_j>} - z_i on R^d, A = B (2407.01602).

    With `Layers(alpha/(1 + alpha))` this is the paper's layer (z_i + alpha mean)/(1 + alpha).
    """
    return _model("HardmaxFlow", Attention(weights, 1.0, Hardmax()) + Drift(-1.0))


def RescaledSA(beta: ArrayLike | Schedule, weights: Schedule | None = None) -> Dynamics:
    """Attention on R^d without layer norm, in the frame z = e^{-tV} x (2305.05465)."""
    attention = Attention(weights, beta, Softmax())
    return Dynamics(None, attention, frame=Rescaled(), label="RescaledSA")


def NoisyUSA(
    beta: ArrayLike | Schedule,
    temperature: float | Schedule,
    convention: Convention = "perspective",
) -> Dynamics:
    """USA with independent spherical Brownian motion sqrt(2 temperature) dB (2512.01868)."""
    return USA(beta, convention, noise=Brownian(temperature))


def StochasticSA(
    beta: ArrayLike | Schedule, scale: float | Schedule, weights: Schedule | None = None
) -> Dynamics:
    """Random value matrices shared by all tokens: dx_i = scale P dW m_i (2601.21942)."""
    attention = Attention(weights, beta, Softmax())
    return _model("StochasticSA", Drift(0.0), noise=CommonNoise(attention, scale))


def _model(
    label: str,
    term: Term,
    plus: Term | None = None,
    normalisation: Normalisation | None = None,
    noise: Noise | None = None,
) -> Dynamics:
    whole = term if plus is None else term + plus
    return Dynamics(None, whole, noise, normalisation, label=label)


MODELS = {
    model.__name__: model
    for model in (
        SA,
        USA,
        CausalSA,
        KineticFlow,
        SinkhornSA,
        L2SA,
        SigmoidSA,
        LinearSA,
        KernelFlow,
        HardmaxFlow,
        RescaledSA,
        NoisyUSA,
        StochasticSA,
    )
}
