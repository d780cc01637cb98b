"""Test support: packed arrays as a page reads them."""

import base64

import numpy as np


def unpack(packed):
    """The array of a PackedArray."""
    numbers = np.frombuffer(
        base64.b64decode(packed["data"]), np.dtype(packed["dtype"]).newbyteorder("<")
    )
    return numbers.reshape(packed["shape"])
