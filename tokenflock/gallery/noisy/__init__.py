"""Noisy attention: transitions (2606.05140) and states of several clusters (2510.20094)."""
