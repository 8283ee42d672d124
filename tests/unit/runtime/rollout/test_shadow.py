"""Two revisions on the same inputs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.runtime.rollout.changes import changes
from koordpolicy.runtime.rollout.counts import (
    ComparisonCounts,
    ComparisonTally,
    counts_from_json,
    counts_to_json,
)
from koordpolicy.runtime.rollout.shadow import WAITING, Comparison
from tests.unit.graph.policies_text import document, graph


def revision(target: str, minimum: str = 'cpu("1")', **more: str) -> RuleGraph:
    spec = f"  target: {{cel: '{target}'}}\n  minimum: {{cel: '{minimum}'}}"
    return graph(document("CPUSuppress", "all", spec), *more.values())


OLD = revision("node.capacity.cpu * percent(65)")
NEW = revision(
    'node.capacity.cpu > cpu("8") ? node.capacity.cpu * percent(50) : node.capacity.cpu * percent(65)'
)
FAILING = revision("node.capacity.cpu - node.usage.prod.cpu")
TARGET = "CPUSuppress.target"


def comparison(old: RuleGraph, new: RuleGraph, sample: float = 100.0, keep: int = 5) -> Comparison:
    made = Comparison(old, new, changes(old, new).decisions)
    made.begin(sample, keep)
    return made


def node(cpu: int) -> dict[str, Any]:
    return {"capacity.cpu": cpu, "labels": {}}


class TestChanges:
    def test_only_what_is_computed_otherwise_differs(self) -> None:
        found = changes(OLD, NEW)
        assert (sorted(found.decisions), sorted(found.kinds)) == ([TARGET], ["CPUSuppress"])

    def test_a_revision_differs_from_itself_in_nothing(self) -> None:
        found = changes(OLD, revision("node.capacity.cpu * percent(65)"))
        assert (found.decisions, found.kinds) == (frozenset(), frozenset())

    def test_a_parameter_changes_what_reads_it(self) -> None:
        text = "  parameters: {share: %s}\n  target: {cel: node.capacity.cpu * parameters.share}"
        one = graph(document("CPUSuppress", "all", text % "65%"))
        two = graph(document("CPUSuppress", "all", text % "60%"))
        assert changes(one, two).decisions == {TARGET, "CPUSuppress.parameters.share"}

    def test_tests_and_rollouts_change_no_kind_that_decides(self) -> None:
        rollout = document("Rollout", "r", "  steps: [{name: a, canary: {share: 5%}, hold: 1m}]")
        test = document(
            "PolicyTest",
            "t",
            "  cases: [{name: a, given: {node: {capacity: {cpu: 1}}}, expect: {CPUSuppress.enabled: true}}]",
        )
        assert (
            changes(OLD, revision("node.capacity.cpu * percent(65)", rollout=rollout, test=test)).kinds
            == frozenset()
        )


class TestComparing:
    @given(st.lists(st.integers(0, 64_000), max_size=60))
    def test_differences_are_counted_and_the_acting_answer_given(self, sizes: list[int]) -> None:
        made = comparison(OLD, NEW)
        watched = made.watched(OLD)
        for cpu in sizes:
            assert watched.value(TARGET, node=node(cpu)) == OLD.value(TARGET, node=node(cpu))
        assert made.drain() == len(sizes)
        large = sum(NEW.value(TARGET, node=node(cpu)) != OLD.value(TARGET, node=node(cpu)) for cpu in sizes)
        assert made.counts.total == ComparisonTally(len(sizes), large, 0)
        assert len(made.differences) == min(5, large)

    def test_either_graph_may_act(self) -> None:
        made = comparison(OLD, NEW)
        assert made.watched(NEW).value(TARGET, node=node(10_000)) == 5_000
        made.drain()
        kept = made.differences[0]
        assert (kept.decision, kept.active, kept.candidate) == (TARGET, "6500", "5000")
        assert kept.facts == {"node.capacity.cpu": 10_000}

    def test_what_does_not_differ_is_not_asked(self) -> None:
        made = comparison(OLD, NEW)
        watched = made.watched(OLD)
        assert watched.program("CPUSuppress.minimum") is OLD.program("CPUSuppress.minimum")
        watched.value("CPUSuppress.minimum", node=node(1))
        assert made.drain() == 0

    def test_a_failure_of_the_new_revision_alone_is_one(self) -> None:
        made = comparison(OLD, FAILING)
        assert made.watched(OLD).value(TARGET, node=node(1000)) == 650
        made.drain()
        assert made.counts.total == ComparisonTally(1, 1, 1)
        assert "node.usage.prod.cpu" in made.differences[0].candidate

    def test_two_failures_agree(self) -> None:
        made = comparison(OLD, FAILING)
        with pytest.raises(CelError):
            made.watched(OLD).value(TARGET, node={})
        made.drain()
        assert made.counts.total == ComparisonTally(1, 0, 0)

    def test_an_answer_with_provenance_is_compared_once(self) -> None:
        made = comparison(OLD, NEW)
        answer = made.watched(OLD).ask(TARGET, node=node(10_000))
        assert (answer.value, answer.provenance.rules[0].document) == (6_500, "CPUSuppress/all")
        made.drain()
        assert made.counts.total.compared == 1

    @pytest.mark.parametrize(("sample", "compared"), [(100.0, 1000), (10.0, 100), (0.5, 5), (0.0, 0)])
    def test_only_the_sampled_share_is_compared(self, sample: float, compared: int) -> None:
        made = comparison(OLD, NEW, sample)
        watched = made.watched(OLD)
        for cpu in range(1000):
            watched.value(TARGET, node=node(cpu))
        assert made.drain() == compared

    def test_what_comes_too_quickly_is_dropped_and_counted(self) -> None:
        made = comparison(OLD, NEW)
        watched = made.watched(OLD)
        for cpu in range(WAITING + 7):
            watched.value(TARGET, node=node(cpu))
        assert (made.dropped, made.drain()) == (7, WAITING)

    def test_what_changes_after_the_question_changes_no_comparison(self) -> None:
        made = comparison(OLD, NEW)
        record = node(10_000)
        made.watched(OLD).value(TARGET, node=record)
        record["capacity.cpu"] = 1
        made.drain()
        assert made.differences[0].facts == {"node.capacity.cpu": 10_000}

    def test_a_step_begins_from_nothing(self) -> None:
        made = comparison(OLD, NEW)
        made.watched(OLD).value(TARGET, node=node(10_000))
        made.drain()
        made.begin(50.0, 1)
        assert (made.counts, list(made.differences)) == (ComparisonCounts(), [])


TALLIES = st.builds(ComparisonTally, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
COUNTS = st.builds(
    ComparisonCounts,
    st.dictionaries(st.sampled_from(["CPUSuppress", "Overcommit"]), TALLIES),
    st.integers(0, 10**6).map(lambda n: n * 1000),
    st.integers(0, 10**6).map(lambda n: n * 1000),
)


@given(COUNTS, COUNTS)
def test_counts_add_up_and_travel(one: ComparisonCounts, other: ComparisonCounts) -> None:
    both = one + other
    assert both.total.compared == one.total.compared + other.total.compared
    assert both.active_time == one.active_time + other.active_time
    assert counts_from_json(counts_to_json(one)) == one
