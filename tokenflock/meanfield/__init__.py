"""The infinite-token limit: measures as states of `solve`, and what is known of their equation.

How a measure is held, and moved:

    circle       Fourier(modes): densities on the circle
    quantiles    Quantiles(n): any measure on the circle, through the formation of atoms
    zonal        Zonal(d, degree): axially symmetric densities on S^{d-1}
    sphere       Harmonics(degree): densities on S^2
    moments      Moments(d): Gaussian measures on R^d
    affine       the field of a model at a Gaussian
    step_control fixed steps that do not jump over the blow-up of a Gaussian
    gaussian_statistics    mean, covariance, ranks and angles, of tokens and Gaussians alike
    laws         named densities to start from
    galerkin, kernel, energy, starting    the weak form that Fourier, Zonal and Harmonics share
    energy       the energy that a flow increases, term by term, for its dissipation identity
    cdf          distribution functions on the circle and their inverses

What is asked about it:

    linear       growth rates around the uniform measure
    limit        how far n tokens are from their limit
    transport    W2 on the circle
    jko, metric  minimising movements, and the metric in which SA is a gradient flow
    landscape    critical points of attention with a perceptron: found, certified, continued
    stationary   stationary states with noise: branches, folds, hysteresis
    continuation curves of solutions of F(x, parameter) = 0

The names of __init__.pyi are loaded on first use.
"""

import lazy_loader

from ..old_names import refusing

_look_up, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = refusing(__name__, _look_up)
