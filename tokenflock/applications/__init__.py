"""What is built on all of the library, and loaded only when it is called.

sentiment   a classifier of texts whose hardmax attention can be read (2407.01602)
benchmarks  one per speed statement, with the peers beside us in the same run
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["benchmarks", "sentiment"])
