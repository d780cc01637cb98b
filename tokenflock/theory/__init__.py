"""Closed forms: the oracles against which every simulation is judged. float64, vectorised.

equiangular     tokens sharing one inner product: gamma(t), times, tails (SA and USA)
normalisation   the same under post, pre, mix, peri, ngpt and sqrt layer norm; the exact layer map
clusters        two tokens, two clusters, lifetimes, energy plateaus, the pairing phase
spacing         linking angles: how many clusters chance makes of uniform tokens
uniform         energies, hemispheres and linear growth rates around the uniform measure
noise           critical temperatures, order parameter, spherical Brownian motion
perceptron      attention with a perceptron on the circle: masses and atoms of SOPD states
homogenized     overlaps of tokens under layers of random heads
causal          the causal kernel, its peak, and the number of centres
kinetic         causal attention with ALiBi: retrieval by position, its thresholds, soft accuracy

Every function states its formula, its source and its range. Where SA and USA differ, `kind` is a kind of
attention: `kinds.Softmax()`, or `kinds.Unnormalised(convention)` in the clock of "perspective", with weights
e^{beta<x,y>}/n (2312.10794), or of "metastability", e^{beta(<x,y>-1)}/n (2410.06833). The functions are
listed in __init__.pyi and loaded on first use, with what they need of SciPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
