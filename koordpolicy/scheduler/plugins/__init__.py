"""The plugins that policies name: filters and scores by name, in the order of the manual."""

from koordpolicy.scheduler.plugins.base import Plugin
from koordpolicy.scheduler.plugins.parameters import ParameterError, Parameters
from koordpolicy.scheduler.plugins.table import PLUGINS
from koordpolicy.scheduler.plugins.verdicts import Verdicts

__all__ = ["PLUGINS", "ParameterError", "Parameters", "Plugin", "Verdicts"]
