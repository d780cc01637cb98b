"""Closed forms: the oracles against which every simulation is judged. float64, vectorised.

equiangular     tokens sharing one inner product: gamma(t), times, tails (SA and USA)
normalisation   the same under post, pre, mix, peri, ngpt and sqrt layer norm; the exact layer map
clusters        two tokens, two clusters, lifetimes, energy plateaus, the pairing phase
metastability   how long separated caps stay apart
spacing         linking angles: how many clusters chance makes of uniform tokens
uniform         energies, hemispheres and linear growth rates around the uniform measure
noise           critical temperatures, order parameter, spherical Brownian motion
perceptron      attention with a perceptron on the circle: masses and atoms of SOPD states
stochastic      two tokens under random value matrices
homogenized     overlaps of tokens under layers of random heads
flat_pair       two tokens at beta = 0 under random values: the chain and its diffusion, exactly
causal          the causal kernel, its peak, and the number of centres
gaussian        Gaussian measures on R^d: softmax, l2 and Sinkhorn attention, blow-up, W2
kinetic         causal attention with ALiBi: retrieval by position, its thresholds, soft accuracy
sinkhorn        Sinkformers: energies, normalising rows and columns, the heat equation
context         one attention layer on n tokens when beta = gamma log n

Every function states its formula, its source and its range. Where USA appears, `convention` picks
the weights: "perspective" e^{beta<x,y>}/n (2312.10794) or "metastability" e^{beta(<x,y>-1)}/n
(2410.06833).
"""

from .causal import RENYI_CONSTANT as RENYI_CONSTANT
from .causal import cap_mass as cap_mass
from .causal import expected_renyi_centres as expected_renyi_centres
from .causal import expected_strong_centres as expected_strong_centres
from .causal import interaction_kernel as interaction_kernel
from .causal import interaction_slope as interaction_slope
from .causal import kernel_peak as kernel_peak
from .clusters import antipodal_growth_rate as antipodal_growth_rate
from .clusters import descent_angle as descent_angle
from .clusters import descent_time as descent_time
from .clusters import log_two_cluster_lifetime as log_two_cluster_lifetime
from .clusters import merge_fraction as merge_fraction
from .clusters import merge_point as merge_point
from .clusters import pairing_angle as pairing_angle
from .clusters import pairing_rate as pairing_rate
from .clusters import plateau_energy as plateau_energy
from .clusters import plateau_levels as plateau_levels
from .clusters import two_cluster_lifetime as two_cluster_lifetime
from .clusters import two_cluster_rate as two_cluster_rate
from .clusters import two_token_rate as two_token_rate
from .context import attention_correlation as attention_correlation
from .context import critical_gamma as critical_gamma
from .context import long_context_correlation as long_context_correlation
from .context import long_context_limit as long_context_limit
from .equiangular import equiangular_gamma as equiangular_gamma
from .equiangular import equiangular_gap as equiangular_gap
from .equiangular import equiangular_rate as equiangular_rate
from .equiangular import equiangular_time as equiangular_time
from .equiangular import flat_attention_gamma as flat_attention_gamma
from .equiangular import gamma_from_w as gamma_from_w
from .equiangular import gap_from_w as gap_from_w
from .equiangular import log_equiangular_time as log_equiangular_time
from .equiangular import log_w_rate as log_w_rate
from .equiangular import tail_rate as tail_rate
from .equiangular import w_from_gamma as w_from_gamma
from .flat_pair import chain_expectation as chain_expectation
from .flat_pair import diffusion_expectation as diffusion_expectation
from .gaussian import bures_w2 as bures_w2
from .gaussian import l2_blow_up_time as l2_blow_up_time
from .gaussian import l2_slope as l2_slope
from .gaussian import limit_rank as limit_rank
from .gaussian import sinkhorn_correlation as sinkhorn_correlation
from .gaussian import sinkhorn_slope as sinkhorn_slope
from .gaussian import softmax_blow_up_time as softmax_blow_up_time
from .gaussian import softmax_covariance as softmax_covariance
from .gaussian import softmax_limit as softmax_limit
from .gaussian import softmax_mean as softmax_mean
from .homogenized import depth_regime as depth_regime
from .homogenized import direction_overlap as direction_overlap
from .homogenized import gram_drift as gram_drift
from .homogenized import gram_variation as gram_variation
from .homogenized import high_temperature_moments as high_temperature_moments
from .homogenized import layered_depth as layered_depth
from .homogenized import logistic_depth as logistic_depth
from .homogenized import logistic_overlap as logistic_overlap
from .homogenized import noise_strength as noise_strength
from .homogenized import simplex_drift as simplex_drift
from .homogenized import simplex_overlap as simplex_overlap
from .homogenized import slow_coefficient as slow_coefficient
from .homogenized import slow_probability as slow_probability
from .homogenized import slow_share as slow_share
from .homogenized import two_point_exponent as two_point_exponent
from .homogenized import variance_proxy as variance_proxy
from .homogenized import zero_temperature_exponent as zero_temperature_exponent
from .kinetic import DOUBLE_WELL as DOUBLE_WELL
from .kinetic import DOUBLE_WELL_TIME as DOUBLE_WELL_TIME
from .kinetic import Head as Head
from .kinetic import chance_accuracy as chance_accuracy
from .kinetic import expected_accuracy as expected_accuracy
from .kinetic import graphon as graphon
from .kinetic import graphon_time as graphon_time
from .kinetic import largest_rate as largest_rate
from .kinetic import log_mode_rates as log_mode_rates
from .kinetic import log_retrieval_profile as log_retrieval_profile
from .kinetic import mode_rates as mode_rates
from .kinetic import mode_response as mode_response
from .kinetic import modes_needed as modes_needed
from .kinetic import primacy_exponent as primacy_exponent
from .kinetic import profile_minimum as profile_minimum
from .kinetic import recency_slope as recency_slope
from .kinetic import recency_threshold as recency_threshold
from .kinetic import retrieval_profile as retrieval_profile
from .kinetic import signed_profile as signed_profile
from .kinetic import smallness_time as smallness_time
from .kinetic import soft_accuracy as soft_accuracy
from .kinetic import soft_accuracy_by_modes as soft_accuracy_by_modes
from .metastability import MetastabilityWindow as MetastabilityWindow
from .metastability import cap_alpha as cap_alpha
from .metastability import metastability_window as metastability_window
from .metastability import separation as separation
from .metastability import smallest_angle as smallest_angle
from .noise import brownian_correlation as brownian_correlation
from .noise import continuity_beta as continuity_beta
from .noise import critical_coupling as critical_coupling
from .noise import critical_kappa as critical_kappa
from .noise import critical_temperature as critical_temperature
from .noise import hybrid_exponents as hybrid_exponents
from .noise import hybrid_threshold as hybrid_threshold
from .noise import noisy_growth_rate as noisy_growth_rate
from .noise import order_parameter as order_parameter
from .noise import pitchfork_curvature as pitchfork_curvature
from .normalisation import EquiangularPath as EquiangularPath
from .normalisation import attention_norm as attention_norm
from .normalisation import attention_projection as attention_projection
from .normalisation import initial_slope as initial_slope
from .normalisation import layer_map as layer_map
from .normalisation import layer_steps as layer_steps
from .normalisation import scheme_rates as scheme_rates
from .normalisation import scheme_speed as scheme_speed
from .normalisation import solve_scheme as solve_scheme
from .perceptron import atom_count_bound as atom_count_bound
from .perceptron import concavity_angle as concavity_angle
from .perceptron import inner_curvature_bound as inner_curvature_bound
from .perceptron import kernel_curvature as kernel_curvature
from .perceptron import mass_bound as mass_bound
from .perceptron import outer_curvature_bound as outer_curvature_bound
from .perceptron import perceptron_size as perceptron_size
from .sinkhorn import alternating as alternating
from .sinkhorn import alternation_rate as alternation_rate
from .sinkhorn import coupling_energy as coupling_energy
from .sinkhorn import coupling_potential as coupling_potential
from .sinkhorn import heat_deficit_bound as heat_deficit_bound
from .sinkhorn import kernel_energy as kernel_energy
from .sinkhorn import sinkhorn_heat_variance as sinkhorn_heat_variance
from .sinkhorn import sinkhorn_shift as sinkhorn_shift
from .sinkhorn import softmax_curl as softmax_curl
from .sinkhorn import softmax_heat_variance as softmax_heat_variance
from .sinkhorn import softmax_shift as softmax_shift
from .spacing import means_something as means_something
from .spacing import spacing_angle as spacing_angle
from .spacing import uniform_clusters as uniform_clusters
from .stochastic import antipodal_exponent as antipodal_exponent
from .stochastic import antipodal_probability as antipodal_probability
from .stochastic import antipodal_threshold as antipodal_threshold
from .stochastic import collapse_exponent as collapse_exponent
from .stochastic import overlap_drift as overlap_drift
from .stochastic import overlap_variance as overlap_variance
from .uniform import dominant_mode as dominant_mode
from .uniform import energy_dirac as energy_dirac
from .uniform import energy_iid as energy_iid
from .uniform import energy_uniform as energy_uniform
from .uniform import growth_rate as growth_rate
from .uniform import kernel_eigenvalue as kernel_eigenvalue
from .uniform import log_growth_rate as log_growth_rate
from .uniform import log_partition as log_partition
from .uniform import log_wendel_probability as log_wendel_probability
from .uniform import ngon_hessian_eigenvalues as ngon_hessian_eigenvalues
from .uniform import transition_beta as transition_beta
from .uniform import wendel_probability as wendel_probability
