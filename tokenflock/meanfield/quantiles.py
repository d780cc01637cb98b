"""The circle by equal-mass characteristics: a measure as its quantiles, which move with the flow.

theta_m(t), m = 0..n-1, are the lifted angles at masses (m + 1/2)/n counted from a cut that moves with
the flow. Without noise each obeys theta' = v[mu](theta), so the scheme is the particle system started
from quantiles: second order in 1/n while the density is smooth, and still right when it becomes atoms,
where a grid fails. Order is kept by one-dimensional transport, hence positivity; mass is exact.
"""
