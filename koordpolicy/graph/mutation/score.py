"""Which mutants the tests of a bundle notice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from koordpolicy.graph.compiler import Compilation, Compiler
from koordpolicy.graph.decide import parameter_key, rules_behind
from koordpolicy.graph.diff.compare import known_texts
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.layers import Layer
from koordpolicy.graph.mutation.documents import mutants_of
from koordpolicy.graph.mutation.mutant import Mutant
from koordpolicy.graph.proof import Differ, ProofBudget, Proved, decide
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.graph.rules import DecisionKey, Rule
from koordpolicy.graph.testing.results import CaseResult, Results
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import number, refs_of, substitute
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.kinds import PolicySpec
from koordpolicy.language.kinds.bundle import LibrarySpec
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec


class Fate(StrEnum):
    """What becomes of a mutant. Only those that tests notice or not count in the score."""

    NOTICED = "noticed"
    UNNOTICED = "unnoticed"
    UNREACHED = "unreached"
    REFUSED = "refused"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class Score:
    """The mutants that were tried, by place, each with its fate; `all` are as many as there are."""

    fates: Mapping[Mutant, Fate]
    all: int

    def count(self, *fates: Fate) -> int:
        """How many met one of these fates."""
        return sum(fate in fates for fate in self.fates.values())

    @property
    def counted(self) -> int:
        """How many say something about the tests."""
        return self.count(Fate.NOTICED, Fate.UNNOTICED, Fate.UNREACHED)

    @property
    def percent(self) -> float:
        """The share of those that count which tests notice, 0 to 100; 100 where there is none."""
        return 100.0 * self.count(Fate.NOTICED) / self.counted if self.counted else 100.0

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """Those that no test notices, by place."""
        return tuple(one for one, fate in self.fates.items() if fate in (Fate.UNNOTICED, Fate.UNREACHED))


def score(
    compiler: Compiler,
    own: Layer,
    original: Compilation,
    run: Results,
    most: int,
    go_on: Callable[[], bool] = lambda: True,
) -> Score:
    """Try mutants of the layer's documents, `most` of them at most, as long as `go_on` says so.

    `run` are the results of all tests of the original, which pass, with coverage; the compiler has compiled the
    original last. Which mutants are taken where there
    are more depends on nothing but themselves, and they are tried in an order in which those before any point are a
    sample of all.
    """
    highest = max((unit.layer for unit in original.units), default=0)
    mutants = mutants_of(unit for unit in original.units if unit.layer == highest)
    trial = _Trial(compiler, own, original, run)
    fates: dict[Mutant, Fate] = {}
    for mutant in islice(sorted(mutants, key=lambda one: one.id), most):
        if not go_on():
            break
        fates[mutant] = trial.fate(mutant)
    return Score({one: fates[one] for one in mutants if one in fates}, len(mutants))


class _Trial:
    """The original, and what is needed to try mutants of it."""

    def __init__(self, compiler: Compiler, own: Layer, original: Compilation, run: Results) -> None:
        assert original.graph is not None
        self._compiler = compiler
        self._own = own
        self._graph = original.graph
        self._cases = run.cases
        self._made = compiler.made
        self._texts = known_texts(self._graph)
        self._behind: dict[str, frozenset[str]] = {}

    def fate(self, mutant: Mutant) -> Fate:
        """What becomes of it."""
        graph = self._compiled(mutant, checked=True)
        if graph is None:
            return Fate.REFUSED
        reaching = [(case, asked) for case in self._cases if (asked := self._reached(mutant, case))]
        if any(not case.holds(graph, asked) for case, asked in reaching):
            return Fate.NOTICED
        if self._compiled(mutant, checked=False) is None:
            return Fate.REFUSED
        if self._means_the_same(mutant, graph):
            return Fate.EQUAL
        return Fate.UNNOTICED if reaching else Fate.UNREACHED

    def _compiled(self, mutant: Mutant, *, checked: bool) -> RuleGraph | None:
        files = {**self._own.files, mutant.file: mutant.text}
        self._compiler.learn(
            self._made
        )  # all but the changed file is as it was before the mutant before this one
        return self._compiler.compile(Layer(self._own.name, files), checked=checked).graph

    def _reached(self, mutant: Mutant, case: CaseResult) -> frozenset[str]:
        """The decisions of a case in which the document has a part; none where it does not evaluate the expression."""
        unit = mutant.unit
        decisions = frozenset(outcome.expectation.decision for outcome in case.outcomes)
        is_function = isinstance(unit.spec, LibrarySpec) and mutant.path[1] == "functions"
        if isinstance(unit.spec, PolicySpec | PolicyExceptionSpec) or is_function:
            in_expression = mutant.path[-1] in ("cel", "expression", "condition")
            if in_expression and (unit.id, mutant.path) not in case.expressions:
                return frozenset()
        if not isinstance(unit.spec, PolicySpec):
            return decisions  # exceptions, libraries, classes and bands have a part in many decisions
        return frozenset(name for name in decisions if unit.id in self._documents(name))

    def _documents(self, name: str) -> frozenset[str]:
        """The documents that have a part in a decision, itself or by a parameter."""
        known = self._behind.get(name)
        if known is None:
            decision = self._graph.decision(name)
            used = (parameter_key(rule.key, used) for rule in decision.rules for used in rule.parameters)
            rules = [*decision.rules, *rules_behind(used, self._graph.decisions)]
            known = self._behind[name] = frozenset(rule.document for rule in rules)
        return known

    def _means_the_same(self, mutant: Mutant, graph: RuleGraph) -> bool:
        """Whether every rule of the document gives the same, whatever parameters are set to: it is the same expression,
        or is proved to.

        False may be said in vain.
        """
        unit = mutant.unit
        if not isinstance(unit.spec, PolicySpec):
            return False
        here, there = (_rules(one, unit.target) for one in (self._graph, graph))
        if [(rule.key, rule.rank) for rule in here] != [(rule.key, rule.rank) for rule in there]:
            return False
        pairs = [
            (rule.key, old, new)
            for rule, other in zip(here, there, strict=True)
            for old, new in zip(_expressions(rule), _expressions(other), strict=True)
        ]
        numbering = number([one for _, old, new in pairs for one in (old, new)])
        return all(
            numbering.of(old) == numbering.of(new) or self._is_proved(key, old, new, graph)
            for key, old, new in pairs
        )

    def _is_proved(self, key: DecisionKey, old: ir.Node, new: ir.Node, graph: RuleGraph) -> bool:
        """Whether there is a proof that two expressions of a decision never differ."""
        left, right = _without_constants(old, self._graph), _without_constants(new, graph)
        if any(space == "parameters" for space, _ in refs_of(left, right)) or left.type != right.type:
            return False  # with other parameters they may well differ
        roots = self._graph.decisions[key].roots
        goal = Differ(left, right, _asking(roots, left, graph.budget), _asking(roots, right, graph.budget))
        return isinstance(decide(goal, self._texts, _BUDGET, simple=False), Proved)


_BUDGET = ProofBudget(inputs=1_500, work=1_000_000)
"""What may be spent on one mutant that no test notices."""


def _without_constants(node: ir.Node, graph: RuleGraph) -> ir.Node:
    return fold(substitute(node, graph.constants))


def _asking(roots: tuple[str, ...], node: ir.Node, budget: int) -> Callable[[Records], Any]:
    program = compile_row(roots, node, budget=budget)
    return lambda records: program.call(*(records.get(root, {}) for root in roots))


def _rules(graph: RuleGraph, target: str) -> list[Rule]:
    return [
        rule for key, decision in graph.decisions.items() if key.target == target for rule in decision.rules
    ]


def _expressions(rule: Rule) -> tuple[ir.Node, ir.Node]:
    return rule.value, rule.match.test or constant(BOOL, True)
