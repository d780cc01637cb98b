from .correlations import correlations as correlations
from .correlations import fourier_coefficients as fourier_coefficients
from .graphon import Averages as Averages
from .layered import Layered as Layered
from .layered import by_position as by_position
from .layered import layered as layered
from .retrieval import sample_recall as sample_recall
