"""Checks of meaning, one file a subject. A new check is a function here and a line in `CHECKS`."""

from collections.abc import Callable

from koordpolicy.graph.meaning.bands import bands
from koordpolicy.graph.meaning.classes import classes
from koordpolicy.graph.state import State

CHECKS: tuple[Callable[[State], None], ...] = (bands, classes)
