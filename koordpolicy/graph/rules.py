"""Rules and decisions as values: what the passes hand on to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, total_ordering

from koordpolicy.diagnostics import Span
from koordpolicy.graph.conditions import can_fail
from koordpolicy.graph.terms import Terms
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type
from koordpolicy.language.facts import Component
from koordpolicy.language.kinds import Combine


@dataclass(frozen=True, slots=True, order=True)
class DecisionKey:
    """The identity of a decision, written `Kind/subject.field` (`Kind.field` without a subject)."""

    kind: str
    subject: str
    field: str

    def __str__(self) -> str:
        return f"{self.target}.{self.field}"

    @property
    def target(self) -> str:
        """`Kind/subject`: what all documents that speak of the same thing share."""
        return f"{self.kind}/{self.subject}" if self.subject else self.kind


@total_ordering
@dataclass(frozen=True, slots=True)
class Rank:
    """Which of two matching rules wins: exceptions, then precedence, then bundle over pack, then narrowness.

    `narrowness` is 3 with a pod selector, 2 with namespaces, 1 with nodes, 0 without a selector.
    """

    precedence: int
    layer: int
    narrowness: int
    exceptional: bool = False

    @property
    def order(self) -> tuple[bool, int, int, int]:
        """The higher one wins."""
        return (self.exceptional, self.precedence, self.layer, self.narrowness)

    def __lt__(self, other: "Rank") -> bool:
        return self.order < other.order


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a label selector: `operator` is In, NotIn, Exists or DoesNotExist.

    `root` is the record whose labels are asked: node, namespace or pod.
    """

    root: str
    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleMatch:
    """When a rule applies: all label requirements and the condition.

    `test` is the whole as one boolean expression, None when the rule always applies. What is found out about it stays
    with it from revision to revision, while its document is the same.
    """

    requirements: tuple[Requirement, ...] = ()
    condition_span: Span | None = None
    test: ir.Node | None = None

    @property
    def place(self) -> str:
        """Where the condition stands, as `FILE:LINE:COLUMN`; empty without one."""
        span = self.condition_span
        return "" if span is None else f"{span.file}:{span.start.line}:{span.start.column}"

    def can_fail(self, resolved: ir.Node) -> bool:
        """Whether the test may fail, with its parameters as they are in `resolved`."""
        return self._can_fail if resolved is self.test else can_fail(resolved)

    @cached_property
    def _can_fail(self) -> bool:
        return self.test is not None and can_fail(self.test)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One document's contribution to one decision. A rule equals only itself.

    `value` is the typed expression with variables inlined; parameters are still references to
    their decisions, and `parameters` names those that value and match use. `text` is what the author
    wrote, and `variables` are those of the document, resolved like the value, for explanations. `terms` are
    those of the exception that the rule comes from; None for every other rule.
    """

    key: DecisionKey
    rank: Rank
    document: str
    layer: str
    span: Span
    match: RuleMatch
    value: ir.Node
    text: str
    parameters: frozenset[str] = frozenset()
    variables: Mapping[str, ir.Node] = field(default_factory=dict)
    terms: Terms | None = None

    @property
    def id(self) -> str:
        return f"{self.document}#{self.key.field}"


@dataclass(frozen=True, slots=True)
class Decision:
    """A question the graph answers. `rules` are sorted, the winning rank first.

    `roots` are the records its expressions may read, in the order programs take them. `default` is
    the value where no rule matches; a null constant where the slot has none. `components` ask it.
    """

    key: DecisionKey
    type: Type
    combine: Combine
    components: frozenset[Component]
    roots: tuple[str, ...]
    meaning: str
    default: ir.Node
    rules: tuple[Rule, ...] = field(default=())

    @property
    def is_requirement(self) -> bool:
        """Whether it says what must hold, so that where it cannot be told, it does not."""
        return self.key.field.rpartition(".")[2] == "require"
