"""What a revision says of the next one, and what its guards say of facts."""

from typing import Any

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.labels import parse_selector
from koordpolicy.model.policy_revision import RevisionAgents
from koordpolicy.runtime.rollout.counts import ComparisonCounts, ComparisonTally
from koordpolicy.runtime.rollout.judging import Baseline, Gathered, increase, judge, rollout_facts
from koordpolicy.runtime.rollout.machine import Judged
from koordpolicy.runtime.rollout.plan import RolloutGuard, RolloutPlan, RolloutStep, plan_of
from koordpolicy.runtime.rollout.state import Phase, RolloutProgress, Subject
from tests.unit.graph.policies_text import document, graph

SECOND = 10**9
MINUTE = 60 * SECOND
START = 1_800_000_000 * SECOND
STATE = RolloutProgress(Subject("n", "b", "new", "d", "old"), Phase.PROGRESSING, "few", 1, START, START)

NOTHING = ComparisonCounts()
CAREFUL = """
  kinds: [CPUSuppress]
  parameters: {tolerated: 5%}
  every: 5s
  steps:
    - {name: shadow, shadow: {sample: 10%, keep: 3}, hold: 10m}
    - name: few
      shadow: {}
      canary:
        share: 5%
        nodes: {matchLabels: {pool: web}, matchExpressions: [{key: gpu, operator: DoesNotExist}]}
      hold: {cel: "rollout.disagreements > 0 ? duration('1h') : duration('5m')"}
    - {name: half, canary: {share: 50%}, untilResumed: true}
  guards:
    - {name: alike, require: {cel: rollout.disagreement <= parameters.tolerated}, patience: 1m,
       reason: {cel: "percentText(rollout.disagreement) + ' differ'"}}
    - {name: sound, require: {cel: rollout.failures == 0}, action: Pause}
    - {name: binds, match: {condition: rollout.step == 'half'},
       require: {cel: "rollout.metrics['rejected_total'] < 10.0"}}
"""


def careful(spec: str = CAREFUL, *more: str) -> RuleGraph:
    return graph(document("Rollout", "careful", spec), *more)


def facts(
    counts: ComparisonCounts = NOTHING, metrics: dict[str, float] | None = None, **changed: Any
) -> dict[str, Any]:
    gathered = Gathered(counts, 3, 0, 1)
    return {**rollout_facts(STATE, gathered, metrics or {}, START + 7 * MINUTE), **changed}


def test_a_plan_is_what_the_policy_says() -> None:
    plan = plan_of(careful(), facts(), START)
    assert plan == RolloutPlan(
        (
            RolloutStep("shadow", 10 * MINUTE, sample=10.0, keep=3),
            RolloutStep(
                "few",
                5 * MINUTE,
                sample=100.0,
                keep=20,
                nodes=parse_selector("pool=web,!gpu"),
                share=5.0,
            ),
            RolloutStep("half", 0, until_resumed=True, share=50.0),
        ),
        (RolloutGuard("alike", MINUTE), RolloutGuard("sound", pauses=True), RolloutGuard("binds")),
        5 * SECOND,
        frozenset({"CPUSuppress"}),
    )


def test_agents_judge_it_once_they_are_counted_in_its_step() -> None:
    spec = """
  steps: [{name: few, canary: {share: 5%}, hold: 5m}]
  guards:
    - {name: taken, require: {cel: rollout.agents.running == rollout.agents.due}, knownWithin: 20m, patience: 10m,
       reason: {cel: "string(rollout.agents.behind) + ' behind, ' + string(rollout.agents.silent) + ' silent'"}}
    - {name: fits, require: {cel: rollout.agents.rejected == 0}}
"""
    policies = careful(spec)
    plan = plan_of(policies, facts(), START)
    assert plan.guards == (
        RolloutGuard("taken", 10 * MINUTE, known_within=20 * MINUTE),
        RolloutGuard("fits"),
    )

    def judged(agents: RevisionAgents) -> list[Judged]:
        given = rollout_facts(STATE, Gathered(agents=agents), {}, START)
        return list(judge(policies, plan, given, START).values())

    assert [one.holds for one in judged(RevisionAgents())] == [None, None], "nobody has counted"
    assert [one.holds for one in judged(RevisionAgents(step="shadow", due=0))] == [None, None], (
        "not in this step"
    )
    few = RevisionAgents(running=1, canary=2, behind=1, silent=1, rejected=1, step="few", due=6)
    assert judged(few) == [Judged(False, "1 behind, 1 silent"), Judged(False)]
    assert judged(RevisionAgents(canary=3, step="few", due=3)) == [Judged(True), Judged(True)]


def test_it_may_depend_on_how_it_goes() -> None:
    plan = plan_of(careful(), facts(ComparisonCounts({"CPUSuppress": ComparisonTally(10, 1, 0)})), START)
    assert plan.steps[1].hold == 60 * MINUTE


def test_no_rollout_has_no_steps() -> None:
    plan = plan_of(graph(document("CPUSuppress", "all", "  target: 1")), facts(), START)
    assert plan.steps == ()
    assert not plan.concerns(frozenset({"CPUSuppress"}))


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [({"CPUSuppress"}, True), ({"Overcommit"}, False), ({"Overcommit", "CPUSuppress"}, True), (set(), False)],
)
def test_it_concerns_changes_of_its_kinds(changed: set[str], concerned: bool) -> None:
    assert plan_of(careful(), facts(), START).concerns(frozenset(changed)) is concerned


def test_without_kinds_it_concerns_every_change() -> None:
    plan = RolloutPlan((RolloutStep("a", 0),))
    assert plan.concerns(frozenset({"Overcommit"}))
    assert not plan.concerns(frozenset())


def test_a_step_whose_document_does_not_apply_now_is_left_out() -> None:
    spec = "  match: {condition: now < timestamp('2020-01-01T00:00:00Z')}\n  steps: [{name: old, hold: 1m}]"
    assert plan_of(careful(spec), facts(), START).steps == ()


def test_another_document_may_change_one_number() -> None:
    hurry = document("Rollout", "hurry", "  steps: [{name: shadow, hold: 1m}]")
    above = graph(hurry, pack=document("Rollout", "careful", CAREFUL))
    step = plan_of(above, facts(), START).steps[0]
    assert (step.name, step.hold, step.sample) == ("shadow", MINUTE, 10.0)


def test_a_plan_that_fails_says_so() -> None:
    spec = "  steps: [{name: a, hold: {cel: rollout.latency.active}}]"
    with pytest.raises(CelError):
        plan_of(careful(spec), facts(), START)


class TestGuards:
    plan = plan_of(careful(), facts(), START)

    def judged(self, given: dict[str, Any]) -> dict[str, Judged]:
        return judge(careful(), self.plan, given, START)

    def test_they_hold_or_do_not(self) -> None:
        well = self.judged(facts(ComparisonCounts({"CPUSuppress": ComparisonTally(100, 5, 0)})))
        assert [one.holds for one in well.values()] == [True, True, True]
        ill = self.judged(facts(ComparisonCounts({"CPUSuppress": ComparisonTally(100, 6, 1)})))
        assert (ill["alike"], ill["sound"]) == (Judged(False, "6% differ"), Judged(False))

    def test_or_cannot_be_told(self) -> None:
        assert self.judged(facts())["alike"].holds is None

    def test_they_count_where_they_match(self) -> None:
        assert self.judged(facts(metrics={"rejected_total": 11.0}))["binds"].holds is True
        half = facts(metrics={"rejected_total": 11.0}, step="half")
        assert self.judged(half)["binds"].holds is False


def test_facts_say_how_it_goes() -> None:
    counts = ComparisonCounts(
        {"CPUSuppress": ComparisonTally(8, 2, 1), "Overcommit": ComparisonTally(2, 0, 0)}, 10_000, 20_000
    )
    found = facts(counts)
    assert found["disagreement"] == 20.0
    assert found["disagreementByKind"] == {"CPUSuppress": 25.0, "Overcommit": 0.0}
    assert (found["latency.active"].ns, found["latency.candidate"].ns) == (1_000, 2_000)
    assert found["elapsed"].ns == 7 * MINUTE
    assert (found["instances.total"], found["instances.canary"]) == (3, 1)


def test_counters_count_from_when_the_step_began() -> None:
    numbers = {"rejected_total": 12.0, "depth": 3.0, "new_total": 1.0}
    found = increase(numbers, frozenset({"depth"}), Baseline({"rejected_total": 10.0, "depth": 2.0}))
    assert found == {"rejected_total": 2.0, "depth": 3.0, "new_total": 1.0}
