"""PolicyTests: cases that show nothing, names that two have, tests of what the bundle has no part in."""

from collections.abc import Iterable, Mapping

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.decide import parameter_key, rules_behind
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.kinds import PolicySpec
from koordpolicy.language.kinds.bundle import PolicyBundleSpec, PolicyTestSpec
from koordpolicy.language.kinds.invariants import InvariantSpec
from koordpolicy.language.kinds.rollout import RolloutSpec


def policy_tests(state: State) -> None:
    """KP505 to KP508 for the tests of the bundle itself; what packs test is their own."""
    own = len(state.layers) - 1
    units = [unit for unit in state.units if unit.layer == own]
    tests = [unit for unit in units if isinstance(unit.spec, PolicyTestSpec)]
    for unit in tests:
        _cases(state, unit)
    policies = [
        unit
        for unit in units
        if not isinstance(unit.spec, PolicyTestSpec | PolicyBundleSpec | RolloutSpec | InvariantSpec)
    ]
    if not policies:
        if not state.found.has_errors:  # a pack that does not exist, say, is the cause
            _report_empty(state, units)
    elif not state.found.has_errors and all(isinstance(unit.spec, PolicySpec) for unit in policies):
        # A rule with an error has no part in anything, which is told already. Libraries, classes, bands and exceptions have a part in many decisions.
        names = {str(key): key for key in state.decisions}
        documents = {unit.id for unit in policies}
        for unit in tests:
            _reach(state, unit, names, documents)


def _cases(state: State, unit: Unit) -> None:
    assert isinstance(unit.spec, PolicyTestSpec)
    positions = unit.document.positions
    known: dict[str, int] = {}
    for at, case in enumerate(unit.spec.cases):
        path = ("spec", "cases", at)
        if not case.expect:
            state.found.add(
                "KP505",
                positions.value((*path, "expect")),
                f"the case `{case.name}` expects nothing, so it passes whatever is decided",
                help="name a decision and its value, such as `Overcommit/batch.cpu: 4`",
            )
        for decision, wanted in case.expect.items():
            if isinstance(wanted, Mapping) and set(wanted) == {"error"} and not wanted["error"]:
                state.found.add(
                    "KP505",
                    positions.value((*path, "expect", decision)),
                    f"the case `{case.name}` expects an error, and says nothing of which",
                    help="write a part of its message; a slip in the policy fails, too",
                    severity=Severity.WARNING,
                )
        first = known.setdefault(case.name, at)
        if first != at:
            state.found.add(
                "KP506",
                positions.value((*path, "name")),
                f"two cases have the name `{case.name}`",
                notes=(Note("the other one", positions.value(("spec", "cases", first, "name"))),),
                help="say in each name what is special about the case",
                severity=Severity.WARNING,
            )


def _report_empty(state: State, units: Iterable[Unit]) -> None:
    """A bundle that adds nothing to its packs: its tests, if it has any, are tests of the packs."""
    for unit in units:
        if isinstance(unit.spec, PolicyBundleSpec):
            state.found.add(
                "KP507",
                unit.document.span,
                f"the bundle `{unit.document.name}` has no policy of its own",
                help="add a document that says what differs from the packs, and see that `include` names its file",
                severity=Severity.WARNING,
            )


def _reach(state: State, unit: Unit, names: dict[str, DecisionKey], documents: set[str]) -> None:
    assert isinstance(unit.spec, PolicyTestSpec)
    asked = {names[name] for case in unit.spec.cases for name in case.expect if name in names}
    if asked and not any(documents & _behind(state, key) for key in asked):
        state.found.add(
            "KP508",
            unit.document.span,
            f"no document of the bundle has a part in what the test `{unit.document.name}` expects",
            help="expect a decision that the bundle changes; the packs have tests of their own",
            severity=Severity.WARNING,
        )


def _behind(state: State, key: DecisionKey) -> set[str]:
    """The documents of the bundle that have a part in a decision, itself or by a parameter."""
    rules = state.decisions[key].rules
    used = [parameter_key(rule.key, name) for rule in rules for name in rule.parameters]
    own = state.own.name
    return {rule.document for rule in (*rules, *rules_behind(used, state.decisions)) if rule.layer == own}
