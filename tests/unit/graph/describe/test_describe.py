"""Explanations in words, kept as golden files; all of them fit the terminal."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe import describe, describe_answer, describe_declaration, describe_subject
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.graph.neutral import records_of
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.language.kinds import KINDS
from tests.unit.graph.policies_text import document, graph
from tests.unit.graph.testing.bundle import BATCH, POOL, RULE, SUPPRESS

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[Path, str], None]

PRECEDENT = document(
    "CPUSuppress",
    "large",
    """
  match:
    nodes: {matchExpressions: [{key: gpu, operator: DoesNotExist}, {key: zone, operator: NotIn, values: [a, b]}]}
    condition: node.capacity.cpu >= cpu("64")
  precedence: 10
  target: {cel: node.capacity.cpu - cpu("8")}
""",
)


@pytest.fixture(scope="module")
def policies() -> RuleGraph:
    return graph(SUPPRESS, POOL, BATCH, RULE, PRECEDENT)


def fits(text: str, width: int = 80) -> None:
    """No line is wider, but for one that is a single word (a path, say) behind its indent."""
    for line in text.splitlines():
        assert len(line) <= width or len(line.split()) == 1, line


@pytest.mark.parametrize(
    "name", ["CPUSuppress.target", "CPUSuppress.figures[pods]", "CPUSuppress.enabled", "Overcommit/batch.cpu"]
)
def test_decisions(name: str, policies: RuleGraph, golden: Golden) -> None:
    text = describe(policies, name)
    fits(text)
    golden(GOLDEN / f"decision-{name.replace('/', '-')}.txt", text)


def test_subjects(policies: RuleGraph, golden: Golden) -> None:
    text = describe_subject(policies, "CPUSuppress")
    fits(text)
    golden(GOLDEN / "subject-CPUSuppress.txt", text)


def test_an_unknown_name_is_told_with_the_nearest(policies: RuleGraph) -> None:
    with pytest.raises(UnknownDecision, match=r"did you mean `CPUSuppress`\?"):
        describe_subject(policies, "CPUSupress")


ANSWERS = {
    "pool": {("node", "capacity.cpu"): 8000, ("node", "labels"): {"pool": "b"}},
    "large": {("node", "capacity.cpu"): 128_000, ("node", "labels"): {"zone": "c"}},
    "missing": {},
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers(case: str, policies: RuleGraph, golden: Golden) -> None:
    name = "CPUSuppress.minimum" if case == "missing" else "CPUSuppress.target"
    text = describe_answer(policies, name, records_of(ANSWERS[case]), frozenset({"node.usage.total.cpu"}))
    text = text.replace(policies.digest[:12], "<revision>")
    fits(text)
    golden(GOLDEN / f"answer-{case}.txt", text)


def test_an_answer_by_variables_shows_their_values(policies: RuleGraph) -> None:
    pods = [{"usage.cpu": 250}, {"usage.cpu": 1000}]
    text = describe_answer(policies, "CPUSuppress.figures[pods]", records_of({("node", "pods"): pods}))
    assert "variables.pods = 1250m" in text


@pytest.mark.parametrize("name", ["node.usage.prod.cpu", "node.usage.total", "now", "pod.labels", "percent"])
def test_declarations(name: str, golden: Golden) -> None:
    text = describe_declaration(name)
    assert text is not None
    fits(text)
    golden(GOLDEN / f"declaration-{name}.txt", text)


def test_everything_that_is_declared_can_be_described() -> None:
    names = [*KINDS, *ROOTS]
    names += [
        f"{root}.{fact.path}"
        for root, declared in ROOTS.items()
        for fact in FACTS.leaves(declared.type.record or "")
    ]
    for name in names:
        text = describe_declaration(name)
        assert text is not None
        assert text.startswith(name.partition("(")[0])
        fits(text)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("node.usage.prd.cpu", "node.usage.prod.cpu"),
        ("CPUSuppress.taget", "CPUSuppress.target"),
        ("Overcomit", "Overcommit"),
        ("startWith", "startsWith"),
        ("Overcommit.cpu", "Overcommit/batch.cpu"),
    ],
)
def test_what_was_meant_is_named(name: str, meant: str, policies: RuleGraph) -> None:
    with pytest.raises(UnknownDecision, match=rf"did you mean `{re.escape(meant)}`\?"):
        describe_subject(policies, name)


@pytest.mark.parametrize("name", ["nothing", "node.nothing", "CPUSuppress.target"])
def test_what_is_not_declared_is_not_described(name: str) -> None:
    assert describe_declaration(name) is None
