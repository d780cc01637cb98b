"""Draw docs/images/meanfield-limit.png: tokens against their limit, up to a million of them.

    python docs/build_limit.py

The figure `mean-field-limit` of the gallery with more tokens than its quick scale; some minutes on two cores.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from tokenflock.papers.perspective.figures.limit import mean_field_limit

PICTURE = Path(__file__).parent / "images" / "meanfield-limit.png"
SIZES = {"ns": (64, 256, 1024, 4096), "draws": 16, "many": 1_000_000}


def main() -> None:
    """Compute, draw, and print what the picture shows."""
    data = mean_field_limit.compute(**SIZES)
    mean_field_limit.draw(data).savefig(PICTURE, dpi=160)
    for case in data.case.values:
        one = data.sel(case=case)
        rate, error = float(one.rate), float(one.rate_error)
        print(f"{case}: n^{rate:.3f} +- {error:.3f}, a million: {float(one.many_distance):.3g}")


if __name__ == "__main__":
    main()
