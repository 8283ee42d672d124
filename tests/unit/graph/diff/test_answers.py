"""Which of the three answers a comparison gives, and what its example says."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.diff import Difference, compare
from koordpolicy.graph.diff.asked import told
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.proof import ProofBudget
from koordpolicy.graph.testing import read_facts
from koordpolicy.language.cel.values_time import parse_timestamp
from koordpolicy.language.documents import read_documents
from tests.unit.graph.diff.test_compare import graph, lines

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("answers.yaml"))


class Compared(NamedTuple):
    """A case, its revisions, and what differs."""

    case: dict[str, Any]
    old: RuleGraph
    new: RuleGraph
    difference: Difference


@pytest.fixture(scope="module", params=CASES, ids=lambda case: str(case["name"]))
def compared(request: pytest.FixtureRequest) -> Compared:
    """Each case in turn, with all tests of it: comparing is most of the work."""
    case = request.param
    old, new = (graph({"a": case["text"].replace("$", case[side])}) for side in ("old", "new"))
    return Compared(case, old, new, compare(old, new))


def test_answer(compared: Compared) -> None:
    case, _, _, difference = compared
    assert not difference.open
    assert ("equal" if difference.equal else "differs") == case["answer"]
    assert difference.differs == (case["answer"] == "differs")
    for change in difference.decisions:
        [edit] = change.edits
        assert edit.example is not None
        assert not edit.example.old.same(edit.example.new)
        if "facts" in case:
            assert [f"{fact.path} = {fact.value}" for fact in edit.example.facts] == case["facts"]


def _records(given: dict[str, str]) -> dict[str, Any]:
    """What a test says by facts and the text of their values, read as tests are."""
    lines = []
    for name, value in given.items():
        root, _, path = name.partition(".")
        lines.append(f"{root}: {{{path}: {value}}}" if path else f"{root}: {value}")
    known: dict[tuple[str, str], Any] = {}
    for line in lines:
        found = Diagnostics()
        [document] = read_documents("given.yaml", line, found)
        known.update(read_facts(document.data, document, (), found))
        assert [one.message for one in found] == []
    return records_of(known)


def test_an_example_says_all_that_is_needed_to_ask_again(compared: Compared) -> None:
    """Its facts, as data and as text, read back and asked of both revisions."""
    case, old, new, difference = compared
    changes = difference.decisions if case["name"] not in _BEYOND else ()
    for change in changes:
        [edit] = change.edits
        effects = [(one.decision, shown) for one in change.effects for shown in (one.example, one.also)]
        examples = [(change.decision, edit.example), (change.decision, edit.also), *effects]
        for decision, example in [(name, one) for name, one in examples if one is not None]:
            shown = {fact.path: fact for fact in example.facts if fact.present}
            assert set(example.given) <= set(shown)
            plain = {path: json.dumps(value) for path, value in example.given.items()}
            texts = {
                path: text if _LONG.match(shown[path].value) else shown[path].value
                for path, text in plain.items()
            }
            for given in (plain, texts):
                records = _records(given)
                asked = (new if decision in new else old).decision(decision)
                assert told(old, asked, records)[0].same(example.old)
                assert told(new, asked, records)[0].same(example.new)


_BEYOND = frozenset(("an overflow alone",))
"""Examples with amounts that no test can write."""

_LONG = re.compile(r"[0-9]+ [a-z]")
"""What is too long to be shown whole: `51 containers`."""


def test_gives_up_and_says_why() -> None:
    """Where neither an input nor a proof is found, nothing is claimed, and the budget is named."""
    rule = (
        "kind: AdmissionRule\n"
        'spec: {require: {cel: "pod.name.lowerAscii().upperAscii() == $"}, message: no, reason: low}'
    )

    old, new = (
        graph({"a": rule.replace("$", side)})
        for side in ("pod.name.upperAscii()", "pod.name.upperAscii().upperAscii()")
    )
    difference = compare(old, new, ProofBudget(inputs=1_500, work=100_000))
    assert not difference.differs
    assert not difference.empty
    [left] = difference.open
    assert left.decision == "AdmissionRule/one.require"
    assert "`upperAscii`" in left.why
    assert "1,500 inputs" in left.why


def test_a_renamed_document_is_no_change() -> None:
    """It is told of, and that is all."""
    text = "kind: CPUSuppress\nmetadata: {name: $}\nspec: {match: {nodes: {matchLabels: {pool: a}}}, minimumCPUs: 3}"
    test = "kind: PolicyTest\nmetadata: {name: $}\nspec: {cases: [{name: it, expect: {CPUSuppress.parameters.threshold: 65%}}]}"
    old, new = (
        graph({"a": text.replace("$", name), "b": test.replace("$", name)}) for name in ("first", "other")
    )
    difference = compare(old, new)
    assert difference.empty
    assert list(lines(difference)) == [
        "renamed CPUSuppress/first to CPUSuppress/other",
        "renamed PolicyTest/first to PolicyTest/other",
    ]


def test_what_lacks_a_class_is_refused() -> None:
    """A class that goes takes with it what it permitted."""
    text = (
        "kind: QoSClass\nmetadata: {name: own}\n"
        "spec: {value: OWN, description: own, permittedBands: [prod], defaultBand: prod, wholeCPUs: false, "
        "cpuBinding: Shared, protectionOrder: 5}"
    )
    difference = compare(graph({"a": text}), graph({}))
    told = {effect.decision: effect.example for change in difference.decisions for effect in change.effects}
    example = told["AdmissionRule/permitted-bands.require"]
    assert (example.old.value, example.new.value, example.new.error) == (True, False, None)


def test_examples_take_place_at_the_moment_that_is_named() -> None:
    """Unless the difference is at another one."""
    text = "kind: CPUSuppress\nspec: {minimum: {cel: \"now > timestamp('2020-01-01T00:00:00Z') ? cpu('$') : cpu('2')\"}}"
    old, new = (graph({"a": text.replace("$", cores)}) for cores in "34")
    [change] = compare(old, new, moment=parse_timestamp("2031-05-06T07:08:09Z")).decisions
    example = change.edits[0].example
    assert example is not None
    assert [fact.value for fact in example.facts] == ["2031-05-06T07:08:09Z"]
