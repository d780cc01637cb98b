"""2312.10794v4: A mathematical perspective on Transformers."""

from . import phases as phases  # isort: skip
from . import random_weights as random_weights  # isort: skip
from . import circle as circle  # isort: skip
from . import sphere as sphere  # isort: skip
from . import limit as limit  # isort: skip
