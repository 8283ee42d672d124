"""Disruption budgets as the scheduler reads them."""

import pytest

from koordpolicy.model.disruption import read_budget
from koordpolicy.model.pod import Pod, owned_cpus
from koordpolicy.model.protocol import RESOURCE_STATUS
from koordpolicy.model.reading import Json, ObjectError

WEB = Pod("a", labels={"app": "web"})


def budget(selector: Json | None, **status: object) -> Json:
    spec = {} if selector is None else {"selector": selector}
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": status}


def test_what_a_budget_says() -> None:
    read = read_budget(
        budget({"matchLabels": {"app": "web"}}, disruptionsAllowed=2, disruptedPods={"a": "now"})
    )
    assert (read.key, read.allowed, read.disrupted) == (("default", "b"), 2, frozenset({"a"}))


@pytest.mark.parametrize(
    ("selector", "pod", "covered"),
    [
        ({"matchLabels": {"app": "web"}}, WEB, True),
        ({"matchLabels": {"app": "db"}}, WEB, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, WEB, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, Pod("a"), False),
        ({"matchLabels": {"app": "web"}}, Pod("a", namespace="other", labels={"app": "web"}), False),
        ({}, WEB, False),
        (None, WEB, False),
    ],
)
def test_whom_a_budget_covers(selector: Json | None, pod: Pod, covered: bool) -> None:
    assert read_budget(budget(selector)).covers(pod) is covered


def test_a_pod_that_counts_as_gone_costs_nothing() -> None:
    read = read_budget(budget({"matchLabels": {"app": "web"}}, disruptedPods={"a": "2026-01-01T00:00:00Z"}))
    assert not read.covers(WEB)
    assert read.covers(Pod("b", labels={"app": "web"}))


def test_a_budget_that_cannot_be_read_says_where() -> None:
    with pytest.raises(ObjectError, match=r"spec\.selector\.matchExpressions"):
        read_budget(budget({"matchExpressions": [{"key": "app", "operator": "Near"}]}))


def test_the_cpus_of_a_pod() -> None:
    assert owned_cpus({}) == frozenset()
    assert owned_cpus({RESOURCE_STATUS: '{"cpuset": "2-3,8"}'}) == {2, 3, 8}
    with pytest.raises(ObjectError, match="cpuset"):
        owned_cpus({RESOURCE_STATUS: '{"cpuset": "3-2"}'})
