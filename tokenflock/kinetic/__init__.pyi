from .correlations import correlations as correlations
from .correlations import fourier_coefficients as fourier_coefficients
from .graphon import Averages as Averages
from .layered_density import LayeredDensity as LayeredDensity
from .layered_density import by_position as by_position
from .layered_density import from_law_by_position as from_law_by_position
from .retrieval import sample_recall as sample_recall
