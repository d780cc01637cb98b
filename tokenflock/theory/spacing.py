r"""How far apart n uniform tokens on S^{d-1} are, and how many clusters single linkage makes of them.

Tokens closer than an angle a are linked. A uniform token has lambda = (n-1) p(a) neighbours on average,
p the mass of a cap (`cap_mass`). A graph of n points has at least n - (number of links) components, so

    E[clusters] >= n (1 - lambda/2)                         for every d, n and a.

On the circle clusters end at gaps wider than a, and E[clusters] = n (1 - a/(2 pi))^{n-1}, about
n e^{-lambda/2} (Stevens 1939), where that is above one. In the limit d -> infinity neighbours of a token are
strangers to each other, and the count is that of a random graph (Erdos and Renyi 1960),
n (T - T^2/2)/lambda with T e^{-T} = lambda e^{-lambda}, T <= 1. Spheres in between lie in between: links that
close triangles join nothing.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ._checks import Array, bounded, sphere_dimension
from .causal import cap_mass

# Neighbours of a uniform token at the spacing: at least 3/4 of n uniform tokens then count as clusters.
NEIGHBOURS = 0.5
# However few or far apart tokens are, wider than this (cosine 0.995) they do not point the same way.
WIDEST_LINK = 0.1
# Uniform tokens that make fewer clusters than this share of n, and one, are nearly one cluster.
FEWEST_PER_TOKEN = 0.01


def spacing_angle(n: ArrayLike, d: ArrayLike) -> Array:
    """The linking angle of the rule "spacing": (n-1) cap_mass = 1/2, and at most 0.1.

    n uniform tokens on S^{d-1} then make at least 3n/4 clusters on average (on the circle n e^{-1/4}), so
    that fewer clusters are not chance. d=2: pi/(2(n-1)), a quarter of the mean gap; d=3: 2 arcsin of
    (2(n-1))^{-1/2}. It shrinks like n^{-1/(d-1)}.
    """
    n = bounded("n", n, 2, np.inf, advice="a spacing needs two tokens")
    d = sphere_dimension(d)
    share = special.betaincinv((d - 1) / 2, 0.5, np.minimum(2 * NEIGHBOURS / (n - 1), 1.0))
    return np.minimum(np.arcsin(np.sqrt(share)), WIDEST_LINK)[()]


def uniform_clusters(n: ArrayLike, d: ArrayLike, angle: ArrayLike) -> Array:
    """About how many clusters n uniform tokens make at a linking angle, at least 1.

    Exact on the circle up to the case of no gap; on other spheres the random graph's count, which is below
    theirs: by less than a tenth of n up to one neighbour, by a factor of up to 3 beyond. It says where
    they are one.
    """
    n = bounded("n", n, 2, np.inf, advice="count the tokens")
    d = sphere_dimension(d)
    angle = bounded("angle", angle, 0, np.pi, closed="high", advice="an angle lies in (0, pi]")
    circle = n * np.exp((n - 1) * np.log1p(-angle / (2 * np.pi)))
    neighbours = (n - 1) * cap_mass(angle, d)
    few = np.minimum(neighbours, 1.0)
    # lambertw loses its digits at -1/e, where T is the number of neighbours itself.
    dual = -np.real(special.lambertw(-neighbours * np.exp(-neighbours)))
    T = np.where(neighbours <= 1.0, few, np.clip(dual, 0.0, 1.0))
    graph = n * (T - T**2 / 2) / np.maximum(neighbours, 1e-300)
    return np.maximum(np.where(d == 2, circle, graph), 1.0)[()]


def means_something(n: ArrayLike, d: ArrayLike, angle: ArrayLike) -> NDArray[np.bool_]:
    """Whether a count of clusters can tell anything: not where uniform tokens are (nearly) one cluster."""
    return uniform_clusters(n, d, angle) > 1.0 + FEWEST_PER_TOKEN * np.asarray(n)
