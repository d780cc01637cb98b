"""Paths of settings in a spec, and what people call them: beta for model.beta. Nothing here imports JAX."""

from __future__ import annotations


def last_name(path: str) -> str:
    """The last key of a path; of a position in a list with the name of the list: values_1."""
    *_, owner, key = ["", *path.split(".")]
    return f"{owner}_{key}" if owner and key.isdecimal() else key
