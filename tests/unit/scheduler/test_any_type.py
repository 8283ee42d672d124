"""Expressions of any type (dyn) where a filter or score wants a bool or a number: refused at run time, never converted."""

from typing import Any

import pytest

from koordpolicy.scheduler.evaluation import evaluate
from koordpolicy.scheduler.profile import profile_of
from tests.unit.scheduler.world import PROFILE, World, pod, policies

NODES = {name: {"labels": {"pool": name, "until": "2999-12-31T00:00:00Z"}} for name in "abcdefgh"}


def of_x(value: str, else_: str = "[dyn(true), 1][0]") -> str:
    """A value that the pod `x` alone has: nothing that `check` could know. In a list, the type of what `dyn()` holds is not known."""
    return f"pod.name == 'x' ? {value} : {else_}"


def placed(spec: dict[str, Any], asked: dict[str, Any] | None = None) -> Any:
    world = World(policies(spec))
    world.build({"nodes": NODES})
    return world.place("x", asked)


def required(text: str) -> dict[str, Any]:
    return {"filters": [{"name": "own", "require": {"cel": text}}]}


def scored(text: str) -> dict[str, Any]:
    return {"scores": [{"name": "own", "value": {"cel": text}, "weight": 1_000_000}]}


@pytest.mark.parametrize(
    "text",
    [
        of_x("[dyn(3), true][0]"), "[dyn(node.name), true][0]", "[dyn(pod.name), true][0]", of_x("[dyn(1.5), true][0]"), of_x("[dyn(null), true][0]"), of_x("[dyn([true]), true][0]"),
        of_x("[dyn({'a': true}), true][0]"), "[dyn(now), true][0]", of_x("[dyn(optional.of(true)), true][0]"), "[dyn(node.labels), true][0]", "node.name == 'a' ? [dyn('true'), true][0] : [dyn(1), true][0]",
        "cel.bind(x, [dyn(node.name), true][0], x)", of_x("[dyn(true), 1][1]"),
    ],
)  # fmt: skip
def test_a_filter_that_gives_no_bool_refuses_the_node_and_says_why(text: str) -> None:
    decision = placed(required(text))
    assert not decision.placed
    assert "wrong_type: a bool is wanted" in decision.message


@pytest.mark.parametrize(
    "text", ["dyn(true)", "dyn(node.name) == 'a'", "dyn(node.name == 'a')", "[dyn(true), 1][0]"]
)
def test_a_filter_that_gives_one_after_all_is_a_filter(text: str) -> None:
    assert placed(required(text)).placed


@pytest.mark.parametrize(
    "text",
    [
        *("dyn(1.5)", "dyn(3)", "dyn(node.name)", "dyn(node.name == 'a')"),
        *(of_x("dyn('x')", "dyn(1)"), of_x("dyn(null)", "dyn(1)")),
    ],
)
def test_a_score_of_any_type_places_the_pod(text: str) -> None:
    assert placed(scored(text)).placed


def test_a_score_counts_where_it_is_a_number() -> None:
    assert placed(scored("node.name == 'c' ? dyn(1.5) : dyn('much')")).node == "c"
    assert placed(scored("node.name == 'c' ? dyn(2) : dyn('much')")).node == "c"


def test_whole_and_broken_numbers_in_one_score_lose_nothing() -> None:
    said = {"name": "own", "weight": 1_000_000}
    halves = {"scores": [{**said, "value": {"cel": "node.name == 'b' ? 1.5 : 1.25"}}]}
    ones = {
        "precedence": 10,
        "scores": [
            {"name": "own", "match": {"condition": "node.name == 'a'"}, "value": {"cel": "size(node.name)"}}
        ],
    }
    graph = policies(halves, ones)
    profile = profile_of(graph, PROFILE)
    assert profile.fallback == ()
    world = World(graph)
    world.build({"nodes": NODES})
    cycle = world.scheduler.framework.cycle(pod("x"))
    evaluation = evaluate(cycle, world.scheduler.cache.table)
    (scores,) = [one.scores for one in evaluation.scores if one.step.name == "own"]
    assert scores is not None
    assert scores.tolist() == [1.0, 1.5, *[1.25] * 6]


@pytest.mark.parametrize(
    "spec",
    [
        {
            "filters": [
                {
                    "name": "own",
                    "require": {"cel": "false"},
                    "reason": {"cel": of_x("[dyn(3), true][0]", "[dyn('no'), true][0]")},
                }
            ]
        },
        {
            "filters": [
                {
                    "name": "own",
                    "require": {"cel": "false"},
                    "reason": {"cel": "[dyn(node.name == 'a'), true][0]"},
                }
            ]
        },
        {
            "filters": [
                {"name": "own", "require": {"cel": "false"}, "enabled": {"cel": of_x("[dyn(3), true][0]")}}
            ]
        },
    ],
)
def test_whatever_is_of_another_type_fails_closed(spec: dict[str, Any]) -> None:
    assert not placed(spec).placed


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("condition", [of_x("dyn(3)"), "dyn(pod.name)", "dyn(node.name)"])
def test_where_a_condition_is_no_bool_what_it_guards_has_to_hold(condition: str, holds: bool) -> None:
    spec = {"name": "own", "match": {"condition": condition}, "require": {"cel": str(holds).lower()}}
    assert placed({"filters": [spec]}).placed == holds


@pytest.mark.parametrize(
    "spec",
    [
        {"sampling": {"cel": of_x("[dyn('all'), true][0]")}},
        {"ties": {"cel": of_x("[dyn(3), true][0]")}},
        {
            "queue": {
                "order": [{"cel": of_x("[dyn(3), true][0]")}],
                "initialBackoff": {"cel": of_x("[dyn(3), true][0]")},
                "tryWhenIdle": {"cel": of_x("[dyn(3), true][0]")},
            }
        },
        {"scores": [{"name": "own", "value": {"cel": "1"}, "weight": {"cel": of_x("[dyn('x'), true][0]")}}]},
    ],
)
def test_settings_of_another_type_stop_nobody(spec: dict[str, Any]) -> None:
    placed(spec)


@pytest.mark.parametrize("text", [
    "timestamp(pod.annotations.until) > now", "timestamp(node.labels.until) > now",
    "timestamp(pod.annotations.until) - duration('1h') > now", "timestamp(node.labels.until) - duration('1h') > now",
    "timestamp(node.labels.until) == timestamp(pod.annotations.until)",
    "timestamp(node.labels.until) in [now, now, now, now, timestamp(pod.annotations.until)]",
    "timestamp(node.labels.until).getFullYear() == 2999",
    "[timestamp(node.labels.until), now].max() > now",
])  # fmt: skip
def test_points_in_time_beyond_columns_are_points_in_time(text: str) -> None:
    assert placed(required(text), {"annotations": {"until": "2999-12-31T00:00:00Z"}}).placed


@pytest.mark.parametrize("text", ["timestamp(node.labels.until) - timestamp('0001-01-01T00:00:00Z') > duration('1s')",
    "quantity(node.name + '9e999').asApproximateFloat() > 1.0",
    "number(double(node.labels.until)) > 1",
])  # fmt: skip
def test_what_has_no_value_refuses_the_node(text: str) -> None:
    decision = placed(required(text))
    assert not decision.placed


@pytest.mark.parametrize(("sign", "wanted"), [("&&", True), ("||", True), ("&&", False)])
def test_four_thousand_clauses_are_a_filter(sign: str, wanted: bool) -> None:
    names = [f"v{number}" for number in range(10)]
    parts = [f" {sign} ".join(f'node.name != "{name}{at}"' for at in range(400)) for name in names]
    last = "true" if wanted else "node.labels.pool == 'z'"
    variables = [{"name": name, "expression": part} for name, part in zip(names, parts, strict=True)]
    require = f" {sign} ".join([*(f"variables.{name}" for name in names), last])
    assert placed({"variables": variables, **required(require)}).placed == wanted
