"""The mechanisms that policies name: filters and scores by name, in the order of the manual."""

from koordpolicy.scheduler.mechanisms.base import Mechanism, ParameterError, Parameters, Scores, Verdicts
from koordpolicy.scheduler.mechanisms.table import MECHANISMS

__all__ = ["MECHANISMS", "Mechanism", "ParameterError", "Parameters", "Scores", "Verdicts"]
