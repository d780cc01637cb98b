"""2501.18322: attention without layer norm on R^d, and the Gaussian measures it keeps Gaussian."""

from . import fields as fields  # isort: skip
from . import softmax as softmax  # isort: skip
from . import bounded as bounded  # isort: skip
