"""The gallery: what the papers drew, redrawn. One file (or folder) per paper.

core       what a figure is: data, then a drawing made from the data alone
files      the picture and its data as files
registry   finding figures by id
"""

from .core import Figure as Figure
from .registry import all_figures as all_figures
from .registry import find_figure as find_figure
