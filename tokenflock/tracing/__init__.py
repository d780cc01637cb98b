"""Trace: the observables of the theory on real, trained Transformers."""

from .api import trace as trace
from .interventions import Interventions as Interventions
from .retrieval import retrieval_response as retrieval_response
from .tokenise import Words as Words
