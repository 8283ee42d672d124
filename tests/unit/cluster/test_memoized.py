"""A remembered decision says what it would say when asked anew."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.cluster import memoized
from koordpolicy.cluster.memoized import MemoizedDecision
from koordpolicy.cluster.prepared import PreparedDecision, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from tests.unit.scheduler.world import policies

FIELD = "SchedulingProfile/koord-scheduler.estimator.request"
GRAPH: RuleGraph = policies({})
BY_CONTAINERS: RuleGraph = policies(
    {"estimator": {"request": {"cel": "size(pod.containers) > 1 ? {'cpu': amount(7)} : {'cpu': amount(5)}"}}}
)
BY_THE_WHOLE: RuleGraph = policies(
    {"estimator": {"request": {"cel": "dyn(pod) == dyn({'a': 1}) ? {'cpu': amount(7)} : {'cpu': amount(5)}"}}}
)

_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "x"]), st.sampled_from([0, 100, 2000]))
_PODS = st.fixed_dictionaries(
    {},
    optional={
        "resources.request": _AMOUNTS,
        "resources.limit": _AMOUNTS,
        "band": st.sampled_from(["prod", "batch", ""]),
        "name": st.sampled_from("ab"),
        "containers": st.lists(st.just({"name": "c"}), max_size=2),
    },
)


def remembering(one: PreparedDecision) -> MemoizedDecision:
    return MemoizedDecision(one.value, one.facts)


def said(one: PreparedDecision | MemoizedDecision, facts: dict[str, Any]) -> Any:
    try:
        return one.value({"pod": facts})
    except CelError as error:
        return str(error)


@given(st.lists(_PODS, max_size=12))
def test_it_says_the_same(pods: list[dict[str, Any]]) -> None:
    for graph in (GRAPH, BY_CONTAINERS):
        plain = prepared(graph, FIELD)
        kept = remembering(plain)
        for facts in (*pods, *pods):
            assert said(kept, facts) == said(plain, facts)
        assert said(kept, {}) == said(kept, {}) == said(plain, {})


def test_a_decision_that_reads_the_whole_pod_is_asked_each_time() -> None:
    plain = prepared(BY_THE_WHOLE, FIELD)
    kept = remembering(plain)
    answers = [said(kept, {"a": number}) for number in (0, 1, 0)]
    assert (
        answers
        == [said(plain, {"a": number}) for number in (0, 1, 0)]
        == [{"cpu": 5}, {"cpu": 7}, {"cpu": 5}]
    )


def test_equal_pods_share_an_answer_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memoized, "_MOST", 2)
    kept = remembering(prepared(GRAPH, FIELD))

    def answer(cpu: int) -> Any:
        facts = {"resources.request": {"cpu": cpu}, "resources.limit": {"cpu": cpu}, "band": "prod"}
        return kept.value({"pod": facts})

    first = answer(1000)
    assert answer(1000) is first
    answer(2000)
    assert answer(1000) is first
    answer(3000)
    assert answer(1000) == first
    assert answer(1000) is not first
