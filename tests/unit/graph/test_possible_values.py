"""Whatever an expression gives was foreseen; what a slot does not take is refused, before or at run time."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from koordpolicy.diagnostics import Span
from koordpolicy.graph.analysis.possible import PossibleValues
from koordpolicy.graph.rules import DecisionKey, Rank, Rule, RuleMatch
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError, NotPermitted
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.values import NONE, Duration, Optional
from tests.unit.graph.policies_text import codes, document, graph
from tests.unit.language.cel.columns.generators import NODES, PODS, expressions
from tests.unit.language.cel.columns.support import NOW, ROOT_NAMES, typed

_KEY = DecisionKey("Any", "", "value")
_SPAN = Span.at("any.yaml")


def rule(value: ir.Node) -> Rule:
    return Rule(_KEY, Rank(0, 0, 0), "Any/any", "own", _SPAN, RuleMatch(), value, "")


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@example("min(node.capacity.cpu, millicores(-7)) / 2", {"capacity.cpu": -3}, {})
@example("[node.unschedulable ? 1 : 2, 3].size()", {"unschedulable": True}, {})
@example("[[node.unschedulable ? 1 : 2], [3]].size()", {"unschedulable": True}, {})
@example("math.abs(node.pods.map(p0, 0.0).sum() + (0.0 / 0.0))", {"pods": []}, {})
@example("double(0 + (node.unschedulable ? 9223372036854775807 : 0))", {"unschedulable": True}, {})
@example('(node.unschedulable ? "a" : "b") + "c"', {"unschedulable": True}, {})
@example('optional.none().or(pod.?name.optMap(o, "a")).hasValue()', {}, {})
@given(expressions(), NODES, PODS)
def test_a_value_is_among_those_that_were_foreseen(
    text: str, node: dict[str, Any], pod: dict[str, Any]
) -> None:
    meant = fold(typed(text))
    try:
        value = compile_row(ROOT_NAMES, meant).call(node, pod, NOW)
    except CelError:
        return
    found = PossibleValues({}, {}).of(rule(meant))
    assert any(_covers(one, value) for one in found) or value is NONE or value is None, (text, value)


def _covers(one: Any, value: Any) -> bool:
    if isinstance(value, Optional):
        value = value.value
    if one.known:
        return bool(one.value == value or value != value)
    if isinstance(value, float) and value != value:
        return True  # no number lies anywhere, and no place with a range takes it
    if one.low == -float("inf") and one.high == float("inf"):
        return True
    number = value.ns if isinstance(value, Duration) else value
    return isinstance(number, int | float) and one.low <= number <= one.high


def admission(enforcement: str) -> str:
    return document("AdmissionRule", "own", f"  require: false\n  enforcement: {{cel: {enforcement!r}}}")


@pytest.mark.parametrize(
    "enforcement",
    [
        "has(pod.labels.x) ? 'wern' : 'audit'",
        "pod.labels[?'x'].orValue('wern')",
        "{'a': 'warn', 'b': 'wern'}[pod.name]",
        "['warn', 'wern'][size(pod.name)]",
        "['warn', has(pod.labels.x) ? 'wern' : 'audit'][size(pod.name)]",
        "{'a': has(pod.labels.x) ? 'wern' : 'audit', 'b': 'warn'}[pod.name]",
        "cel.bind(way, has(pod.labels.x) ? 'wern' : 'warn', way)",
        "['audit', 'wern'].filter(way, way != pod.name)[0]",
        "'w' + (has(pod.labels.x) ? 'arn' : 'ern')",
    ],
)
def test_each_arm_is_looked_at(enforcement: str) -> None:
    # What may be beyond a list or map is another finding, a warning.
    assert [code for code in codes(admission(enforcement)) if code != "KP215"] == ["KP107"]


@pytest.mark.parametrize(
    "enforcement",
    [
        "has(pod.labels.x) ? 'warn' : 'audit'",
        "pod.labels[?'x'].orValue('warn')",
        "false ? 'wern' : 'warn'",
        "{'a': 'wern', 'b': 'audit'}['b']",
        "'wern' == pod.name ? 'warn' : 'audit'",
        "[pod.name, 'x', 'y'].size() == 3 ? 'warn' : 'audit'",
    ],
)
def test_what_is_never_given_is_nobodys_mistake(enforcement: str) -> None:
    # That a condition never changes is another finding, a warning.
    assert [code for code in codes(admission(enforcement)) if code != "KP214"] == []


def test_what_only_run_time_knows_is_refused_there() -> None:
    asked = graph(admission("pod.labels[?'x'].orValue('warn')"))
    name = "AdmissionRule/own.enforcement"
    assert asked.value(name, pod={"labels": {}}) == "warn"
    assert asked.value(name, pod={"labels": {"x": "audit"}}) == "audit"
    with pytest.raises(NotPermitted, match="`wern` is not permitted: write `enforce` or `warn` or `audit`"):
        asked.value(name, pod={"labels": {"x": "wern"}})


def test_numbers_are_held_to_their_range_at_run_time() -> None:
    asked = graph(document("CPUSuppress", "own", "  target: 1\n  minimumCPUs: {cel: node.capacity.pods - 5}"))
    assert asked.value("CPUSuppress.minimumCPUs", node={"capacity.pods": 5}) == 0
    with pytest.raises(NotPermitted, match="`-1` is not permitted: write a whole number, 0 to 100000"):
        asked.value("CPUSuppress.minimumCPUs", node={"capacity.pods": 4})


def test_bounds_of_meaning_hold_at_run_time_too() -> None:
    asked = graph(document("CPUSuppress", "own", "  target: 1\n  interval: {cel: node.metric.age}"))
    assert asked.value("CPUSuppress.interval", node={"metric.age": Duration(1)}) == Duration(1)
    with pytest.raises(NotPermitted, match="`0s` is not permitted: write more than 0s"):
        asked.value("CPUSuppress.interval", node={"metric.age": Duration(0)})
