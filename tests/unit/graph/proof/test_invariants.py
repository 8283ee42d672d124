"""Invariants of the pack's decisions: proved, or violated on an input that the engine confirms."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.diff.compare import known_texts
from koordpolicy.graph.invariants import Invariant
from koordpolicy.graph.proof import Counterexample, GaveUp, ProofBudget, Proved
from koordpolicy.graph.proof.invariants import prove, question
from koordpolicy.graph.proof.judging import findings_of, judge
from tests.unit.graph.diff.test_compare import compiled, graph

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("invariants.yaml"))
ANSWERS = {"proved": Proved, "violated": Counterexample, "gave up": GaveUp}


def invariant(spec: dict[str, Any], **others: str) -> tuple[RuleGraph, Invariant]:
    """One invariant over the pack and further documents."""
    found = compiled({"one": f"kind: Invariant\nspec: {json.dumps(spec)}", **others})
    assert found.graph is not None, [one.message for one in found.found]
    return found.graph, next(one for one in found.invariants if one.name == "one")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_answer(case: dict[str, Any]) -> None:
    graph, asked = invariant(case["spec"])
    whole = question(graph, asked)
    answer = prove(whole, known_texts(graph), ProofBudget(inputs=2_000))
    assert isinstance(answer, ANSWERS[case["answer"]])
    if isinstance(answer, Counterexample):
        # Asked by the names of the decisions, not by the expression that was put together.
        values = {name: graph.value(str(key), **answer.records) for name, key in asked.decisions.items()}
        told = whole.values(answer.records)
        assert {name: told[f"decisions.{name}"] for name in values} == values


def test_the_pack_keeps_its_own() -> None:
    found = compiled({})
    assert found.graph is not None
    proofs: dict[str, str] = {}
    judged = list(judge(found.graph, found.invariants, ProofBudget(), proofs))
    assert len(judged) >= 9
    assert [one.invariant.name for one in judged if not isinstance(one.verdict, Proved)] == []
    assert sorted(proofs.values()) == sorted(one.invariant.name for one in judged)


def test_what_was_proved_is_not_asked_again() -> None:
    graph, asked = invariant(CASES[0]["spec"])
    proofs = {question(graph, asked).key: "one"}
    [judged] = judge(graph, [asked], ProofBudget(inputs=1, work=1), proofs)
    assert isinstance(judged.verdict, Proved)


def test_another_formula_is_another_question() -> None:
    spec = CASES[0]["spec"]
    other = "kind: Overcommit\nmetadata: {name: o}\nspec: {resource: batch, parameters: {cpuReclaim: 61%}}"
    assert question(*invariant(spec)).key == question(*invariant(spec)).key
    assert question(*invariant(spec)).key != question(*invariant(spec, other=other)).key


def test_two_revisions() -> None:
    """`before` is the decision of an earlier revision; without one, nothing is asked."""
    spec = {"decisions": {"d": "Overcommit/batch.cpu"}, "require": "decisions.d >= before.d"}
    more = "kind: Overcommit\nmetadata: {name: o}\nspec: {resource: batch, parameters: {cpuReclaim: 70%}}"
    low, asked = invariant(spec)
    high, also = invariant(spec, other=more)
    assert asked.compares
    assert list(judge(low, [asked], ProofBudget(), {})) == []
    [better] = judge(high, [also], ProofBudget(), {}, before=low)
    [worse] = judge(low, [asked], ProofBudget(), {}, before=high)
    assert isinstance(better.verdict, Proved)
    assert isinstance(worse.verdict, Counterexample)
    assert set(worse.values) == {"decisions.d", "before.d"}


def test_a_pack_s_promise_that_a_bundle_breaks_is_told_where_the_bundle_does() -> None:
    found = compiled({"a": "kind: Overcommit\nspec: {resource: batch, parameters: {cpuReclaim: 140%}}"})
    assert found.graph is not None
    judged = judge(found.graph, found.invariants, ProofBudget(), {})
    [finding] = findings_of(judged, found.graph, "bundle")
    assert (finding.code, finding.severity.value, finding.span.file) == ("KP801", "warning", "a.yaml")
    assert "batch-within-the-node" in finding.message


def test_where_nothing_is_decided_nothing_is_asked() -> None:
    """A decision without a rule for some inputs has no answer there, and violates nothing."""
    rule = (
        "kind: CPUSuppress\nmetadata: {name: s}\nspec: {match: {nodes: {matchLabels: {pool: a}}}, minimum: 8}"
    )
    spec = {"decisions": {"d": "CPUSuppress.minimum"}, "require": "decisions.d == cpu('8')"}
    graph_of, asked = invariant(spec, other=rule)
    assert isinstance(prove(question(graph_of, asked), known_texts(graph_of), ProofBudget()), Proved)
    assert graph({}).value("CPUSuppress.minimum", node={"labels": {}}) is None
