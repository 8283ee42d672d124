"""Running a condition on an example, so that nothing is claimed that the engine would not do."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.row import compile_row


def holds(test: ir.Node, roots: tuple[str, ...], facts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the condition is true on the facts; an error counts as not."""
    try:
        return compile_row(roots, test).call(*(facts.get(root, {}) for root in roots)) is True
    except CelError:
        return False
