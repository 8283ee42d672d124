"""Inputs that are shown or searched are such that a test of policies could say them."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph.neutral import GONE, records_of
from koordpolicy.graph.notation import exactly
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.goal import Differ
from koordpolicy.graph.proof.inputs import inputs
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.graph.proof.situations import situations
from koordpolicy.graph.proof.validity import is_valid, repaired
from koordpolicy.graph.testing.facts import read_facts
from koordpolicy.language.cel.types import Type
from koordpolicy.language.documents import read_documents
from koordpolicy.language.facts import FACTS, ROOTS
from tests.unit.graph.proof.expressions import EXPRESSIONS, of_text

HARD = (
    "math.isInf(double(pod.subPriority) / 0.0) || pod.subPriority != 0",
    "1.0 / (double(pod.subPriority) * 0.0) > 0.0 || pod.subPriority == 0",
    "optional.ofNonZeroValue(pod.subPriority).hasValue() || pod.subPriority != 0",
    "pod.request.cpu >= cpu('0') || rollout.failures >= 0 && rollout.failures == 0",
    "node.metric.updatedAt > timestamp('2020-01-01T00:00:00Z')",
    "'nvidia.com/gpu' in node.resources.allocatable && node.resources.allocatable['nvidia.com/gpu'] > 0",
    "node.cpuNormalization > 0.0 || node.cpuNormalization < -9.2e18",
    "oldPod.name == 'a' && has(oldPod.name) || oldPod.priority > 3",
)


def read_back(records: Mapping[str, Any]) -> dict[str, Any]:
    """The records as the facts of a test that says all of them are read."""
    said: dict[str, Any] = {}
    for root, declared in ROOTS.items():
        record = declared.type.record
        if record is None:
            said[root] = exactly(declared.type, records[root])
        elif records[root]:
            said[root] = _said(record, records[root])
    [document] = read_documents("input.yaml", "{}", Diagnostics())
    found = Diagnostics()
    facts = read_facts(said, document, (), found)
    assert not len(found), [one.message for one in found]
    return records_of(facts)


def _said(record: str, held: Mapping[str, Any]) -> dict[str, Any]:
    paths = {fact.path: fact for fact in FACTS.records[record].facts}
    assert held.keys() <= paths.keys()
    missing = [path for path, fact in paths.items() if path not in held]
    assert all(paths[path].may_be_missing for path in missing), missing
    return {
        **{path: _plain(paths[path].type, value) for path, value in held.items()},
        **dict.fromkeys(missing),
    }


def _plain(kind: Type, value: Any) -> Any:
    inner = kind.params[0].record if kind.name == "list" else None
    return exactly(kind, value) if inner is None else [_said(inner, item) for item in value]


def _changes(goal: Differ) -> Iterator[Mapping[str, Any]]:
    reads = reads_of(goal.expressions)
    search = Search(goal, reads, Pools(reads, {}), Draws(b"valid"))
    bases = [one.records for one in situations()]
    for at in range(40):
        yield search.change(bases[at % len(bases)])


@pytest.mark.parametrize("text", [*HARD, *EXPRESSIONS])
def test_inputs_are_valid(text: str) -> None:
    """By the check that the search relies on."""
    known = situations()[0].records
    node = of_text(text)
    goal = Differ(node, of_text("true"), lambda records: records, lambda records: records)
    assert all(is_valid(made.records, known) for made in islice(inputs(node), 200))
    assert all(is_valid(records, known) for records in _changes(goal))


@pytest.mark.parametrize("text", HARD)
def test_inputs_read_back(text: str) -> None:
    """What the check lets through can be said in a test, and means the same there."""
    node = of_text(text)
    for made in islice(inputs(node), 0, 200, 40):
        assert read_back(made.records) == made.records
    for situation in situations():
        assert read_back(situation.records) == situation.records


INVALID: dict[str, tuple[str, str, Any]] = {
    "missing": ("pod", "subPriority", GONE),
    "nothing": ("pod", "subPriority", None),
    "another type": ("pod", "subPriority", 1.0),
    "a number for a moment": ("node", "metric.updatedAt", 0),
    "below its bounds": ("pod", "request.cpu", -1),
    "a speed of nothing": ("node", "cpuNormalization", 0.0),
    "not among its words": ("pod", "kubernetesQoS", "any"),
    "a text among amounts": ("node", "resources.allocatable", {"nvidia.com/gpu": "any"}),
    "half an object": ("oldPod", "name", "a"),
    "no fact": ("pod", "shoeSize", 1),
    "an element without its facts": ("node", "pods", [{"name": "a"}]),
}


@pytest.mark.parametrize("case", INVALID)
def test_what_cannot_be_is_refused_and_repaired(case: str) -> None:
    """One fact of an everyday input is spoiled; the others stay."""
    usual = situations()[0].records
    root, path, value = INVALID[case]
    record = {**usual[root], path: value}
    if value is GONE:
        del record[path]
    spoiled = {**usual, root: record}
    assert not is_valid(spoiled, usual)
    if path in dict.fromkeys(fact.path for fact in FACTS.leaves(ROOTS[root].type.record or "")):
        mended = repaired(spoiled, usual)
        assert is_valid(mended, {})
        assert [name for name in usual if mended[name] != usual[name]] in ([], [root])
