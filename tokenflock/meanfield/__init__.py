"""The infinite-token limit: discretisations of measures, and their solver.

galerkin     densities in eigenfunctions of the Laplacian, by weak form: the scheme of all spectral bases
circle       Fourier(modes): the circle
quantiles    Quantiles(n): equal-mass characteristics on the circle, through the formation of atoms
zonal        Zonal(d, degree): axially symmetric measures on S^{d-1}
sphere       Harmonics(degree): S^2
moments      Moments(d): Gaussian measures on R^d
laws         named densities to start from
solving      solve for a Density: explicit transport, implicit diffusion, health of the run
observables  what can be read off a density
"""

from . import laws as laws
