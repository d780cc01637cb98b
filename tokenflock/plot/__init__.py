"""Figures and animations of runs. matplotlib is imported only when something is drawn."""

from .animate import animate as animate
from .draw import draw as draw
from .sweeps import draw_sweep as draw_sweep
