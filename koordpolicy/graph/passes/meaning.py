"""Meaning: what is well formed but wrong, kind by kind."""

from koordpolicy.graph.meaning import CHECKS
from koordpolicy.graph.state import State


def meaning(state: State) -> None:
    """Run every check of the table; each reports what it finds."""
    for check in CHECKS:
        check(state)
