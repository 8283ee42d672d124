"""What API servers are told to ask about: narrowly, and nothing too little."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.graph.rules import Requirement
from koordpolicy.kube.resources import PODS
from koordpolicy.manager.webhooks.configuration import Address, configurations
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.scope import common
from koordpolicy.manager.webhooks.webhook import Phase
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.vectors.policies import document, graph

ADDRESS = Address("koordpolicy-system", "webhooks")


def entries(*documents: Mapping[str, Any], pack: bool = False) -> dict[str, dict[str, Any]]:
    """The webhooks by name."""
    compiled = graph(*documents) if pack else graph_without_pack(*map(json.dumps, documents))
    webhooks = [one for one in WEBHOOKS if PODS in one.resources and "" in one.subresources]
    found = configurations(compiled, webhooks, ADDRESS, b"CA")
    return {one["name"].removesuffix(".koordpolicy.io"): one for phase in Phase for one in found[phase]}


def profile(name: str, match: dict[str, Any], **spec: Any) -> Mapping[str, Any]:
    return document("ColocationProfile", name, {"match": match, "labels": {"x": "y"}, **spec})


def pods(**labels: str) -> dict[str, Any]:
    return {"pods": {"matchLabels": labels}}


def test_policies_that_say_nothing_ask_for_nothing() -> None:
    assert entries() == {}


def test_a_profile_asks_for_its_pods_alone() -> None:
    match = {**pods(app="spark"), "namespaces": {"matchLabels": {"team": "data"}}}
    found = entries(profile("a", match))["mutate-pod"]
    assert found["objectSelector"] == {
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["spark"]}]
    }
    assert found["namespaceSelector"]["matchExpressions"][2:] == [
        {"key": "team", "operator": "In", "values": ["data"]}
    ]
    assert [rule["operations"] for rule in found["rules"]] == [["CREATE"]]
    assert (found["failurePolicy"], found["timeoutSeconds"]) == ("Fail", 10)


def test_our_own_namespace_and_the_control_planes_are_never_asked_about() -> None:
    for one in entries(pack=True).values():
        assert one["namespaceSelector"]["matchExpressions"][:2] == [
            {"key": "control-plane", "operator": "DoesNotExist"},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["koordpolicy-system"]},
        ]


def test_many_profiles_make_one_short_condition() -> None:
    found = entries(*(profile(f"p{n}", pods(pool=f"n{n}")) for n in range(300)))["mutate-pod"]
    assert found["objectSelector"] == {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
    (condition,) = found["matchConditions"]
    assert condition["expression"] == '(has(object.metadata.labels) && ("pool" in object.metadata.labels))'


def test_profiles_of_different_labels_are_told_apart_by_a_condition() -> None:
    found = entries(profile("a", pods(app="spark")), profile("b", pods(tier="low")))["mutate-pod"]
    assert found["objectSelector"] == {}
    (condition,) = found["matchConditions"]
    assert '"app" in object.metadata.labels' in condition["expression"]
    assert 'object.metadata.labels["tier"] in ["low"]' in condition["expression"]


def test_a_profile_of_any_pod_widens_everything() -> None:
    found = entries(profile("a", pods(app="spark")), profile("b", {}))["mutate-pod"]
    assert found["objectSelector"] == {}
    assert "matchConditions" not in found


def test_bands_whose_resources_are_announced_ask_for_pods_that_have_them() -> None:
    found = entries(pack=True)["mutate-pod"]
    (condition,) = found["matchConditions"]
    assert "kubernetes.io/batch-cpu" in condition["expression"]
    assert found["objectSelector"] == {}


def rule(name: str, **spec: Any) -> Mapping[str, Any]:
    return document("AdmissionRule", name, {"require": False, **spec})


def test_an_update_is_asked_about_whatever_its_labels_have_become() -> None:
    match = pods(app="spark")
    created = entries(rule("a", match=match, operations=["CREATE"]))["validate-pod"]
    assert created["objectSelector"]["matchExpressions"][0]["key"] == "app"
    updated = entries(rule("a", match=match, operations=["UPDATE"]))["validate-pod"]
    assert updated["objectSelector"] == {}
    assert updated["rules"][0]["operations"] == ["UPDATE"]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [(("Ignore", "Ignore"), "Ignore"), (("Ignore", "Fail"), "Fail"), (("Fail", "Fail"), "Fail")],
)
def test_the_server_ignores_a_failure_only_where_all_rules_do(
    policies: tuple[str, ...], expected: str
) -> None:
    rules = [rule(f"r{at}", failurePolicy=one) for at, one in enumerate(policies)]
    assert entries(*rules)["validate-pod"]["failurePolicy"] == expected


def test_the_longest_timeout_counts() -> None:
    assert entries(rule("a", timeout="2s"), rule("b", timeout="5s"))["validate-pod"]["timeoutSeconds"] == 5
    assert entries(rule("a", timeout="30s"))["validate-pod"]["timeoutSeconds"] == 30


def test_a_url_takes_the_place_of_the_service() -> None:
    found = Address("n", "s", url="https://example:9876/").client("/mutate-pod", "Q0E=")
    assert found == {"caBundle": "Q0E=", "url": "https://example:9876/mutate-pod"}


KEYS, VALUES = ("a", "b"), ("1", "2")
LINES = st.builds(
    lambda key, operator, values: Requirement(
        "pod", key, operator, tuple(sorted(values)) if operator in ("In", "NotIn") else ()
    ),
    st.sampled_from(KEYS),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.sets(st.sampled_from(VALUES), min_size=1),
)


def holds(line: Any, labels: dict[str, str]) -> bool:
    """Kubernetes' meaning of a line of a selector."""
    operator, key = line["operator"], line["key"]
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    return (labels.get(key) in line["values"]) is (operator == "In")


@given(
    st.lists(st.lists(LINES, max_size=3), min_size=1, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)),
)
def test_a_common_selector_leaves_out_nothing_that_an_alternative_takes(
    alternatives: list[list[Requirement]], labels: dict[str, str]
) -> None:
    def taken(one: list[Requirement]) -> bool:
        return all(
            holds({"key": line.key, "operator": line.operator, "values": line.values}, labels) for line in one
        )

    if any(taken(one) for one in alternatives):
        assert all(holds(line, labels) for line in common(alternatives, "pod"))


def test_updates_that_change_nothing_for_rules_are_not_asked_about() -> None:
    rule = document("AdmissionRule", "a", {"require": {"cel": "pod.qos != 'LSE'"}})
    (condition,) = entries(rule)["validate-pod"]["matchConditions"]
    assert condition["expression"].startswith(
        'request.operation != "UPDATE" || object.spec != oldObject.spec || object.metadata.?labels != '
    )
    of_users = document("AdmissionRule", "b", {"require": {"cel": "user != 'jane'"}})
    assert "matchConditions" not in entries(rule, of_users)["validate-pod"]


def test_what_api_servers_decide_by_themselves_is_not_asked_about() -> None:
    compiled = graph_without_pack(
        json.dumps(rule("a", operations=["CREATE"], match=pods(app="spark"), timeout="20s")),
        json.dumps(rule("b", operations=["UPDATE"])),
    )
    webhooks = [one for one in WEBHOOKS if one.name == "validate-pod"]

    def asked(*native: str) -> list[tuple[list[str], int]]:
        found = configurations(
            compiled, webhooks, ADDRESS, b"CA", frozenset(f"AdmissionRule/{one}" for one in native)
        )[Phase.VALIDATING]
        return [(one["rules"][0]["operations"], one["timeoutSeconds"]) for one in found]

    assert asked() == [(["CREATE", "UPDATE"], 20)]
    assert asked("a") == [(["UPDATE"], 10)]
    assert asked("b") == [(["CREATE"], 20)]
    assert asked("a", "b") == []
