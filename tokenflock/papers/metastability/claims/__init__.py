"""2410.06833v1: Dynamic metastability in the self-attention model, theorem by theorem.

caps       tokens in separated caps stay there and collapse (sections 2 and 5)
starts     which starts are separated (section 4), and the constants of the main theorem
slow       the energy near the slow manifold (section 3), and along the flow
staircase  the energy climbs plateau by plateau (section 6)
lifetimes  how long two clusters live, and the five-token example
"""

from . import caps as caps  # isort: skip
from . import starts as starts  # isort: skip
from . import slow as slow  # isort: skip
from . import staircase as staircase  # isort: skip
from . import lifetimes as lifetimes  # isort: skip
