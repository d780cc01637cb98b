"""Sweeps: thousands of runs over a grid of settings, in one dataset that survives every crash."""
