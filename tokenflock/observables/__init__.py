"""Observables: what is read off a trajectory."""

from .base import Observable as Observable
from .base import Snapshot as Snapshot
