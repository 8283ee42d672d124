"""What facts and decisions are worth on the records that the bundle's own tests give."""

from dataclasses import dataclass, field

from koordpolicy.graph import Compilation
from koordpolicy.graph.notation import show
from koordpolicy.graph.reads import fact_type
from koordpolicy.graph.testing.run import run_tests

_MOST = 3
"""Values of one name that are shown."""


@dataclass(slots=True)
class Values:
    """Values as text, with the test case that they are from, by fact path and by decision."""

    facts: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    decisions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def of_fact(self, path: str) -> list[tuple[str, str]]:
        return self.facts.get(path, [])[:_MOST]

    def of_decision(self, name: str) -> list[tuple[str, str]]:
        return self.decisions.get(name, [])[:_MOST]


def values_of(compilation: Compilation) -> Values:
    """The values in the bundle's test cases; none where it does not compile."""
    found = Values()
    if compilation.graph is None:
        return found
    for case in run_tests(compilation.graph, compilation.units).cases:
        for outcome in case.outcomes:
            name, answer = outcome.expectation.decision, outcome.answer
            shown = (
                show(outcome.type, answer.value) if answer.error is None else f"error: {answer.error.message}"
            )
            _add(found.decisions, name, case.name, shown)
            for parameter, (type, value) in outcome.parameters.items():
                _add(found.decisions, parameter, case.name, show(type, value))
            for fact in answer.provenance.facts:
                type = fact_type(fact.path)
                if type is not None:
                    _add(
                        found.facts,
                        fact.path,
                        case.name,
                        show(type, fact.value) if fact.present else "missing",
                    )
    return found


def _add(values: dict[str, list[tuple[str, str]]], name: str, case: str, shown: str) -> None:
    known = values.setdefault(name, [])
    if (case, shown) not in known:
        known.append((case, shown))
