"""Arrays as JSON: base64 of little-endian numbers, row-major (web/src/replay/types.ts)."""

from __future__ import annotations

import base64
import math
from typing import Any, Literal

import numpy as np

Dtype = Literal["float32", "float64", "int32"]


def pack(array: Any, dtype: Dtype = "float64") -> dict[str, Any]:
    """A PackedArray."""
    content = np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<"))
    data = base64.b64encode(content.tobytes()).decode("ascii")
    return {"dtype": dtype, "shape": list(content.shape), "data": data}


def numbers(values: Any) -> list[float | None]:
    """A list for JSON: what is not finite becomes None."""
    return [value if math.isfinite(value) else None for value in np.asarray(values, float).tolist()]
