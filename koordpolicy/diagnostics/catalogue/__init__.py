"""A page for every diagnostic code: what it means, why it matters, what to do.

Codes are stable: a code keeps its meaning for ever and is not used again when its check goes. The hundreds
group them: 0 reading, 1 schema, 2 expressions, 3 the rule graph, 4 meaning, 5 policy tests, 6 cost, 7 exceptions and
rollouts, 8 invariants.
"""

from collections.abc import Mapping
from types import MappingProxyType

from koordpolicy.diagnostics.catalogue.code import Code
from koordpolicy.diagnostics.catalogue.cost import COST
from koordpolicy.diagnostics.catalogue.descheduling import DESCHEDULING
from koordpolicy.diagnostics.catalogue.exceptions import EXCEPTIONS
from koordpolicy.diagnostics.catalogue.expressions import EXPRESSIONS
from koordpolicy.diagnostics.catalogue.graph import GRAPH
from koordpolicy.diagnostics.catalogue.invariants import INVARIANTS
from koordpolicy.diagnostics.catalogue.meaning import MEANING
from koordpolicy.diagnostics.catalogue.policy_tests import POLICY_TESTS
from koordpolicy.diagnostics.catalogue.reading import READING
from koordpolicy.diagnostics.catalogue.schema import SCHEMA
from koordpolicy.diagnostics.catalogue.tuning import TUNING
from koordpolicy.diagnostics.nearest import nearest

__all__ = ["CATALOGUE", "GROUPS", "Code", "UnknownCodeError", "page"]

GROUPS: Mapping[str, tuple[Code, ...]] = MappingProxyType(
    {
        "Reading files": READING,
        "Shape of documents": SCHEMA,
        "Expressions": EXPRESSIONS,
        "The rule graph": GRAPH,
        "Meaning": (*MEANING, *TUNING, *DESCHEDULING),
        "Policy tests": POLICY_TESTS,
        "Cost": COST,
        "Exceptions and rollouts": EXCEPTIONS,
        "Invariants": INVARIANTS,
    }
)
"""The codes in order, by what they are about."""

CATALOGUE: Mapping[str, Code] = MappingProxyType(
    {code.code: code for group in GROUPS.values() for code in group}
)
"""Every code by its name."""


class UnknownCodeError(KeyError):
    """There is no such code. Its text is a message for the user."""

    def __init__(self, code: str) -> None:
        close = nearest(code, CATALOGUE)
        hint = f", did you mean `{close}`?" if close else ""
        super().__init__(f"there is no diagnostic code `{code}`{hint}")

    def __str__(self) -> str:
        return str(self.args[0])


def page(code: str, width: int = 80) -> str:
    """The page of a code as Markdown, its prose wrapped to `width` columns. The code's case does not matter.

    Raises `UnknownCodeError` when there is no such code.
    """
    found = CATALOGUE.get(code.strip().upper())
    if found is None:
        raise UnknownCodeError(code)
    return found.markdown(width=width) + "\n"
