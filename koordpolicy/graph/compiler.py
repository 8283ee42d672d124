"""The compiler: an ordered list of passes from files to a rule graph."""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from koordpolicy.diagnostics import Diagnostic, Diagnostics
from koordpolicy.graph.budgets import budget_of
from koordpolicy.graph.cache import Cache
from koordpolicy.graph.catalogue import CATALOGUE_TYPES, catalogue_constants
from koordpolicy.graph.checks import (
    CHECKS,
    availability,
    conflicts,
    cost,
    foresight,
    invariants,
    meaning,
)
from koordpolicy.graph.expressions import Probe, Vocabulary
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.invariants import Invariant
from koordpolicy.graph.layers import Layer, PackFinder, no_packs
from koordpolicy.graph.mended import without_consequences
from koordpolicy.graph.moments import parted
from koordpolicy.graph.passes.catalogue import catalogue
from koordpolicy.graph.passes.decisions import decisions
from koordpolicy.graph.passes.exceptions import exceptions
from koordpolicy.graph.passes.library import library
from koordpolicy.graph.passes.names import names
from koordpolicy.graph.passes.parameters import parameters
from koordpolicy.graph.passes.read import read
from koordpolicy.graph.passes.rules import rules
from koordpolicy.graph.passes.schema import schema
from koordpolicy.graph.state import Progress, State, Unit, silent
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.language.facts import FACTS
from koordpolicy.language.kinds.plugins import PLUGINS, PluginName

Pass = Callable[[State], None]

PASSES: tuple[Pass, ...] = (
    read,  # files of the bundle and its packs become documents
    schema,  # documents become typed units of their kinds
    names,  # every slot that a document sets becomes the draft of a rule
    exceptions,  # what exceptions override becomes drafts for the decisions they name
    library,  # shared constants and functions join the vocabulary
    parameters,  # each parameter gets one type
    rules,  # texts get types and units, constants are folded, variables are inlined
    decisions,  # rules that answer the same question meet, by rank; cycles are rejected
    availability,  # a rule asks only for facts that its decision point has
    catalogue,  # classes and bands become constants
    invariants,  # what must hold of decisions gets its types
    conflicts,  # ties and rules that never decide, with example inputs
    cost,  # no decision needs more steps than the budget
    meaning,  # what is well formed but wrong: bands, thresholds, dangerous values
    foresight,  # expressions that can end in an error, each with the edit that mends it
)


@dataclass(frozen=True, slots=True)
class Compilation:
    """What came of a revision. `graph` is None when there are errors.

    `sources` are the texts of all files by path, for excerpts. `names` are what expressions may name besides the
    variables of their document, by target (`Kind/subject`). `foreign` are files that were left alone, with what they are.
    `invariants` are left out where the revision was checked elsewhere.
    """

    graph: RuleGraph | None
    found: Diagnostics
    units: tuple[Unit, ...]
    sources: dict[str, str]
    names: Mapping[str, Environment] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    invariants: tuple[Invariant, ...] = ()


class Compiler:
    """Compiles revision after revision, remembering what did not change."""

    def __init__(
        self,
        packs: PackFinder = no_packs,
        max_cost: int = DEFAULT_BUDGET,
        plugins: Mapping[str, PluginName] = PLUGINS,
    ) -> None:
        """`max_cost`: units that a decision may cost, whatever a bundle asks for; `plugins`: those that it may name."""
        self._packs = packs
        self._plugins = plugins
        self._max_cost = max_cost
        self._cache = Cache()
        self.made: Mapping[Hashable, object] = {}
        """What the last compilation had to make, as plain values: for `learn` of a compiler in another process."""

    def learn(self, made: Mapping[Hashable, object], *, hand_on: bool = False) -> None:
        """Take over what another compiler has made, so that the next compilation, or the present one, need not.

        With `hand_on`, what the compilation uses of it stands in `made` all the same: for one who learns from this one alone.
        """
        self._cache.learn(made, hand_on=hand_on)

    def kept(self) -> Mapping[Hashable, object]:
        """What the last compilation used, whoever made it, checks included; for `learn` in another process."""
        return self._cache.kept()

    def compile(
        self, own: Layer, progress: Progress = silent, *, checked: bool = False, above: Layer | None = None
    ) -> Compilation:
        """Run all passes. Everything that is wrong is found in one run.

        `progress` is told what begins, in a phrase that goes on from "while". What was `checked` elsewhere is not
        checked again. What lies `above` the bundle outranks it by its precedence, and is no part of it: budgets, tests and the
        name are the bundle's.
        """
        vocabulary = WORDS
        state = State(
            own,
            self._packs,
            self._cache,
            max_cost=self._max_cost,
            plugins=self._plugins,
            vocabulary=vocabulary,
            progress=progress,
            above=above,
        )
        certain: frozenset[Diagnostic] = frozenset()
        for run in PASSES:
            if checked and run in CHECKS:
                continue
            progress(f"the pass `{run.__name__}` ran")
            self._cache.checking = run in CHECKS
            run(state)
            if run is schema:
                certain = frozenset(state.found)
        self._cache.checking = False
        state.found = without_consequences(state.found, (unit.document for unit in state.units), certain)
        digest = _digest(state)
        for _, document in state.documents:
            document.positions.let_go()
        self.made = self._cache.turn()
        graph = None
        if not state.found.has_errors:
            ordinary, exceptional = parted(state.decisions)
            graph = RuleGraph(
                digest,
                state.units,
                state.classes,
                ordinary,
                state.constants,
                state.matches,
                exceptional,
                budget_of(state),
            )
        sources = {file: text for layer in state.every_layer for file, text in layer.files.items()}
        names = {target: vocabulary.environment for target, vocabulary in state.target_vocabularies.items()}
        return Compilation(
            graph,
            state.found,
            tuple(state.units),
            sources,
            names,
            state.foreign,
            tuple(state.invariants),
        )


BASE = Environment(functions=FUNCTIONS, facts=FACTS, homogeneous_literals=True, literal_checks=True)
"""What every expression of a policy may use before its document adds names."""
WORDS = Vocabulary(BASE).extended(catalogue=CATALOGUE_TYPES)
"""The same with the names of what the catalogue says."""


def compile_policies(own: Layer, packs: PackFinder = no_packs) -> Compilation:
    """Compile one revision from scratch."""
    return Compiler(packs).compile(own)


_RULES: tuple[Pass, ...] = (names, exceptions, library, parameters, rules, decisions)
"""The passes that make rules of units."""


def probed(graph: RuleGraph, units: Iterable[Unit], probe: Probe) -> RuleGraph:
    """The graph of the same documents, a probe in all its expressions. Classes and bands are those of `graph`."""
    state = State(
        Layer(""),
        no_packs,
        Cache(),
        vocabulary=WORDS,
        units=list(units),
        probe=probe,
    )
    for run in _RULES:
        run(state)
    state.constants.update(catalogue_constants(graph.classes))
    ordinary, exceptional = parted(state.decisions)
    return RuleGraph(
        graph.digest,
        state.units,
        graph.classes,
        ordinary,
        state.constants,
        state.matches,
        exceptional,
        graph.budget,
    )


def _digest(state: State) -> str:
    """SHA-256 over the meaning of all documents: neither layout nor the order of files matters."""
    lines = sorted(state.cache.get(("digest", unit), partial(_line, unit)) for unit in state.units)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _line(unit: Unit) -> str:
    return json.dumps([unit.layer_name, unit.kind.name, unit.document.data], sort_keys=True, default=str)
