"""Noisy attention: phase transitions, stationary states and bifurcations, one module per paper.

arbitrary_dimension  2606.05140: continuous or discontinuous, in every dimension
circle               2604.16288: the same on the circle, seen in time
manifolds            2412.14813: bifurcations of the uniform state on spheres
stationary           2510.20094: stationary states on the circle, mode by mode

All but the survey were seen as abstracts: where a statement is ours, the note says so.
"""
