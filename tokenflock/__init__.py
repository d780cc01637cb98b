"""tokenflock: a Transformer as a system of interacting particles.

    import tokenflock as flock

    x0 = flock.uniform(flock.Sphere(3), n=64, seed=0)
    run = flock.solve(flock.SA(beta=9.0), x0, t1=30.0, rtol=1e-8, atol=1e-10,
                      save=flock.Save(every=0.1, observe=[flock.energy, flock.clusters(link="spacing")]))

The names below are loaded on first use (see __init__.pyi for the list), so that the import is instant. From
the import on JAX computes in float64 (see startup.py).
"""

import lazy_loader

from .doors import open_doors
from .old_names import refusing
from .startup import set_up_jax

__version__ = "0.1.0"

set_up_jax()
open_doors(
    save="tokenflock.store:save",
    plot="tokenflock.plot:draw",
    animate="tokenflock.plot:animate",
    open_training="tokenflock.applications.sentiment:open_training",
    view="tokenflock.web.notebook:make_view",
)
_look_up, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = refusing(__name__, _look_up)
