"""The plugins that policies name: filters and scores by name, in the order of the manual."""

from koordpolicy.scheduler.plugins.base import ParameterError, Parameters, Plugin, Verdicts
from koordpolicy.scheduler.plugins.table import PLUGINS

__all__ = ["PLUGINS", "ParameterError", "Parameters", "Plugin", "Verdicts"]
