"""The index of profiles finds exactly those that match."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.profile import PriorityClass
from koordpolicy.graph import RuleGraph
from koordpolicy.manager.webhooks.profiles import ColocationProfile, ColocationProfileError, Profiles
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.vectors.policies import document, graph

KEYS, VALUES = ("a", "b", "c"), ("1", "2")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)

LINES = st.one_of(
    st.builds(
        lambda operator, values: {"operator": operator, "values": sorted(values)},
        st.sampled_from(("In", "NotIn")),
        st.sets(st.sampled_from(VALUES), min_size=1),
    ),
    st.builds(lambda operator: {"operator": operator}, st.sampled_from(("Exists", "DoesNotExist"))),
    st.sampled_from(VALUES),
)


def selector(lines: dict[str, Any]) -> dict[str, Any]:
    """One line a key, so that the selector can hold: the compiler refuses those that cannot."""
    return {
        "matchLabels": {key: line for key, line in lines.items() if isinstance(line, str)},
        "matchExpressions": [
            {"key": key, **line} for key, line in lines.items() if not isinstance(line, str)
        ],
    }


SELECTORS = st.dictionaries(st.sampled_from(KEYS), LINES, max_size=3).map(selector)
ROOTS: dict[str, Any] = {
    "pod": {"labels": {"a": "1"}},
    "namespaceObject": {},
    "operation": "CREATE",
    "now": None,
}

MATCHES = st.fixed_dictionaries({}, optional={"pods": SELECTORS, "namespaces": SELECTORS})


def holds(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """A label selector as Kubernetes defines it."""
    equal = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return equal and all(line_holds(line, labels) for line in selector.get("matchExpressions", ()))


def line_holds(line: dict[str, Any], labels: dict[str, str]) -> bool:
    value = labels.get(line["key"])
    match line["operator"]:
        case "In":
            return value in line["values"]
        case "NotIn":
            return value not in line["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None


@given(st.lists(MATCHES, min_size=1, max_size=6), LABELS, LABELS)
def test_profiles_match_by_their_selectors_in_order_of_name(
    matches: list[dict[str, Any]], pod: dict[str, str], namespace: dict[str, str]
) -> None:
    profiles = [
        document("ColocationProfile", f"p{at}", {"match": match, "labels": {"x": "y"}})
        for at, match in enumerate(matches)
    ]
    roots = {
        "pod": {"labels": pod},
        "namespaceObject": {"labels": namespace},
        "operation": "CREATE",
        "now": None,
    }
    compiled = graph_without_pack(*map(json.dumps, profiles))
    found = [one.name for one in matching(compiled, roots)]
    assert found == [
        f"p{at}"
        for at, match in enumerate(matches)
        if holds(match.get("pods", {}), pod) and holds(match.get("namespaces", {}), namespace)
    ]


def matching(compiled: RuleGraph, roots: Mapping[str, Any]) -> list[ColocationProfile]:
    return [one for one in Profiles(compiled).candidates(roots) if one.matches(roots)]


def test_what_a_higher_document_says_does_not_widen_a_profile() -> None:
    base = document(
        "ColocationProfile", "colocation-profile-example", {"enabled": True, "labels": {"drawn": "in"}}
    )
    roots: dict[str, Any] = {"pod": {}, "namespaceObject": {}, "operation": "CREATE", "now": None}
    roots["pod"] = roots["namespaceObject"] = {"labels": {}}
    assert matching(graph(base), roots) == []
    asking = {"labels": {"koordinator.sh/enable-colocation": "true"}}
    (profile,) = matching(graph(base), {**roots, "pod": asking, "namespaceObject": asking})
    effect = profile.effect(
        {**roots, "pod": asking, "namespaceObject": asking}, lambda name: PriorityClass(name, 5000)
    )
    assert effect.labels["drawn"] == "in"


def test_what_a_profile_says_of_all_pods_alike_still_follows_the_classes_that_there_are() -> None:
    said = {"match": {"pods": {"matchLabels": {"a": "1"}}}, "priorityClassName": "p", "labels": {"x": "y"}}
    compiled = graph_without_pack(json.dumps(document("ColocationProfile", "all", said)))
    (profile,) = matching(compiled, ROOTS)
    for value in (1, 2):
        classes = {"p": PriorityClass("p", value)}
        effect = profile.effect(ROOTS, classes.get)
        assert (effect.labels, effect.priority_class) == ({"x": "y"}, classes["p"])
    with pytest.raises(ColocationProfileError, match="no PriorityClass `p`"):
        profile.effect(ROOTS, lambda _: None)


def test_a_profile_that_reads_pods_says_something_else_of_each() -> None:
    said = {
        "match": {"pods": {"matchLabels": {"a": "1"}}},
        "enabled": {"cel": "!('off' in pod.labels)"},
        "labels": {"fixed": "y", "read": {"cel": "pod.labels['b']"}},
    }
    compiled = graph_without_pack(json.dumps(document("ColocationProfile", "reads", said)))
    for value in ("1", "2"):
        roots = {**ROOTS, "pod": {"labels": {"a": "1", "b": value}}}
        (profile,) = matching(compiled, roots)
        assert profile.effect(roots, lambda _: None).labels == {"fixed": "y", "read": value}
    assert not matching(compiled, {**ROOTS, "pod": {"labels": {"a": "1", "off": ""}}})
