"""What the passes work on: everything known so far about the revision being compiled."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph.analysis.possible import RuleValues
from koordpolicy.graph.cache import Cache
from koordpolicy.graph.catalogue import Classes
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.expressions import Path, Probe, Vocabulary
from koordpolicy.graph.invariants import Invariant
from koordpolicy.graph.layers import Layer, PackFinder
from koordpolicy.graph.rules import Decision, DecisionKey, Rank, Rule, RuleMatch
from koordpolicy.graph.slots import nameable_roots
from koordpolicy.graph.terms import Terms
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.ir_walk import refs_of, substitute
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.language.cel.types import Type
from koordpolicy.language.documents import Document
from koordpolicy.language.facts import ROOTS
from koordpolicy.language.kinds import Kind, PolicySpec, Slot, Spec, cel_values, slot_values
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec
from koordpolicy.language.kinds.plugins import PLUGINS, PluginName
from koordpolicy.language.kinds.slots import Value


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One valid policy document with its place among the layers (0 is the lowest pack)."""

    document: Document
    kind: Kind
    spec: Spec
    layer: int
    layer_name: str
    subject: str

    @property
    def id(self) -> str:
        """`Kind/name`, unique within a layer."""
        return f"{self.kind.name}/{self.document.name}"

    @property
    def target(self) -> str:
        """`Kind/subject`: what all documents that speak of the same thing share."""
        return f"{self.kind.name}/{self.subject}" if self.subject else self.kind.name

    @property
    def rank(self) -> Rank:
        """The rank that all rules of the document have."""
        exceptional = isinstance(self.spec, PolicyExceptionSpec)
        match = self.spec.match if isinstance(self.spec, PolicySpec | PolicyExceptionSpec) else None
        narrowness = 0
        if match is not None:
            selectors = ((3, match.pods), (2, match.namespaces), (1, match.nodes))
            narrowness = next((level for level, given in selectors if given is not None), 0)
        return Rank(getattr(self.spec, "precedence", 0), self.layer, narrowness, exceptional)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A slot that a document sets: a rule before its text has a meaning.

    `conditions` lead to the conditions of the list items that the slot stands in. A PolicyException sets slots
    of others: `of` is then a document of the target whose slot it is, and `terms` are the exception's.
    """

    key: DecisionKey
    unit: Unit
    slot: Slot
    path: Path
    raw: Value
    conditions: tuple[Path, ...] = ()
    of: Unit | None = None
    terms: Terms | None = None

    @property
    def home(self) -> Unit:
        """A document of the target that the slot belongs to: its names are those of the draft's expressions."""
        return self.of or self.unit


Progress = Callable[[str], None]
"""Told what a compiler does next, in a phrase that goes on from "while"."""


def silent(_: str) -> None:
    """Tells nobody."""


@dataclass(slots=True)
class State:
    """Handed from pass to pass; each pass fills in its part and reads the earlier ones.

    No decision may cost more units than the operator's `max_cost`. `plugins` are those that policies may name. A `probe`
    is put into all expressions. Files that are `foreign` are left alone: see `language.foreign`. What lies `above` the bundle
    has a name of its own and the bundle's level: its precedence tells that it is above.
    """

    own: Layer
    packs: PackFinder
    cache: Cache
    max_cost: int = DEFAULT_BUDGET
    plugins: Mapping[str, PluginName] = field(default_factory=lambda: PLUGINS)
    found: Diagnostics = field(default_factory=Diagnostics)
    layers: list[Layer] = field(default_factory=list)
    documents: list[tuple[int, Document]] = field(default_factory=list)
    foreign: dict[str, str] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    classes: Classes = field(default_factory=Classes)
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary(Environment()))
    target_vocabularies: dict[str, Vocabulary] = field(default_factory=dict)
    constants: dict[tuple[str, str], ir.Node] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    parameters: dict[str, dict[str, Type]] = field(default_factory=dict)
    matches: dict[Unit, RuleMatch] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    decisions: dict[DecisionKey, Decision] = field(default_factory=dict)
    invariants: list[Invariant] = field(default_factory=list)
    possible: dict[Rule, RuleValues] = field(default_factory=dict)
    progress: Progress = silent
    probe: Probe | None = None
    above: Layer | None = None
    _expressions: Expressions | None = field(default=None, init=False, repr=False)

    @property
    def expressions(self) -> Expressions:
        """Decisions as expressions, each made once for all checks; to be asked once decisions and constants are complete."""
        if self._expressions is None:
            self._expressions = Expressions(self.decisions, self.constants, self.cache)
        return self._expressions

    @property
    def every_layer(self) -> tuple[Layer, ...]:
        """The layers from the lowest pack up, with what lies above the bundle."""
        return (*self.layers, *(() if self.above is None else (self.above,)))

    def resolve_constants(self, node: ir.Node) -> ir.Node:
        """The expression with the constants known so far in place of references to them."""
        return substitute(node, self.constants) if refs_of(node) else node

    def parameter_types(self, target: str) -> Mapping[str, Type]:
        """The parameters that expressions of a target may read."""
        return self.parameters.get(target, {})

    def vocabulary_of(self, unit: Unit) -> Vocabulary:
        """What the expressions of a document may name before it adds its variables."""
        known = self.target_vocabularies.get(unit.target)
        if known is None:
            types = self.parameter_types(unit.target)
            known = self.target_vocabularies[unit.target] = self.cache.same(
                ("names", unit.kind.name, *types),
                (self.vocabulary, *types.values()),
                lambda: self.vocabulary.extended(
                    roots={name: ROOTS[name].type for name in nameable_roots(unit.kind)}, parameters=types
                ),
            )
        return known


def texts_of(unit: Unit) -> Iterator[tuple[Path, str]]:
    """Every CEL text of a document with its path."""
    for bare in cel_values(unit.spec):
        yield bare.path, bare.text
    for slot in slot_values(unit.spec):
        yield from slot.expressions
    if isinstance(unit.spec, PolicyExceptionSpec):
        for name, override in unit.spec.overrides.items():
            yield from override.expressions(("spec", "overrides", name))
