"""What the graph answers, and why."""

from dataclasses import dataclass

from koordpolicy.diagnostics import Span
from koordpolicy.graph.terms import Terms
from koordpolicy.language.cel.errors import CelError


@dataclass(frozen=True, slots=True)
class RuleRef:
    """The rule behind an answer: which document, where, and what it says.

    `terms` say whose exception it is and until when it holds, where the document is a PolicyException.
    """

    decision: str
    document: str
    layer: str
    span: Span
    text: str
    terms: Terms | None = None


@dataclass(frozen=True, slots=True)
class FactRead:
    """A fact that an answer depends on, as `node.usage.total.cpu`, with the value it had.

    `present` is false when the fact was missing; `value` is then None.
    """

    path: str
    value: object
    present: bool = True


@dataclass(frozen=True, slots=True)
class Provenance:
    """The rules that made an answer (the deciding one first, then the parameters it used)."""

    rules: tuple[RuleRef, ...]
    facts: tuple[FactRead, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision's value, or the error that kept it from having one; never both.

    No matching rule gives value None, no error, and no rules in the provenance.
    """

    decision: str
    value: object
    error: CelError | None
    provenance: Provenance
