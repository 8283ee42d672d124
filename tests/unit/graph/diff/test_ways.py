"""Changes that go both ways, and inputs with amounts as clusters have them."""

import pytest

from koordpolicy.graph.diff import Example, compare
from koordpolicy.graph.diff.changes import Told
from koordpolicy.graph.diff.ways import Heading, way_of
from koordpolicy.language.cel.types import BOOL, CPU, DURATION, STRING
from koordpolicy.language.cel.values import Duration
from tests.unit.graph.diff.test_compare import graph

MINIMUM = "kind: CPUSuppress\nspec: {minimum: {cel: \"$ ? cpu('4') : cpu('2')\"}}"
REQUIRE = 'kind: AdmissionRule\nspec: {require: {cel: "$"}, message: no, reason: low}'


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        (Told(CPU, 1), Told(CPU, 2), Heading.UP),
        (Told(CPU, 2), Told(CPU, 1), Heading.DOWN),
        (Told(CPU, 2), Told(CPU, 2), None),
        (Told(BOOL, False), Told(BOOL, True), Heading.UP),
        (Told(DURATION, Duration(2)), Told(DURATION, Duration(1)), Heading.DOWN),
        (Told(CPU, 2), Told(CPU, None, "no such key"), Heading.DOWN),
        (Told(CPU, None, "no such key"), Told(CPU, 2), Heading.UP),
        (Told(CPU, None, "no such key"), Told(CPU, None, "it overflows"), None),
        (Told(STRING, "LS"), Told(STRING, "BE"), None),
        (Told(CPU, None), Told(CPU, 2), None),
    ],
)
def test_way(old: Told, new: Told, way: Heading | None) -> None:
    assert way_of(old, new) is way


def _examples(text: str, old: str, new: str) -> list[tuple[Example, Example | None]]:
    """The examples of all that changes, edited or not."""
    before, after = (graph({"a": text.replace("$", side)}) for side in (old, new))
    found = compare(before, after)
    assert not found.open
    shown = [(edit.example, edit.also) for change in found.decisions for edit in change.edits]
    shown += [(effect.example, effect.also) for change in found.decisions for effect in change.effects]
    return [(example, also) for example, also in shown if example is not None]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MINIMUM, "now.getHours() >= 22", "now > timestamp('2027-01-01T00:00:00Z')"),
        (MINIMUM, "now.getDate() == 25", "now.getDate() == 26"),
        (MINIMUM, "node.labels[?'a'].orValue('') == 'x'", "node.labels[?'a'].orValue('') == 'y'"),
        (REQUIRE, "pod.name.startsWith('a')", "pod.name.endsWith('b')"),
        (MINIMUM, "node.capacity.cpu >= cpu('32')", "node.capacity.memory >= memory('64Gi')"),
    ],
)
def test_one_example_each_way(text: str, old: str, new: str) -> None:
    """Where the answer goes up for some inputs and down for others."""
    for example, also in _examples(text, old, new):
        assert also is not None
        assert {way_of(one.old, one.new) for one in (example, also)} == set(Heading)
        assert example.given != also.given


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MINIMUM, "now.getHours() >= 22", "now.getHours() >= 21"),
        (REQUIRE, "pod.name.matches('^[a-z]+$')", "pod.name.matches('^[a-z]*$')"),
        (MINIMUM, "node.capacity.cpu >= cpu('32')", "node.capacity.cpu > cpu('32')"),
    ],
)
def test_no_example_of_a_way_that_nothing_goes(text: str, old: str, new: str) -> None:
    assert [also for _, also in _examples(text, old, new)] == [None]


POOL = (
    'kind: Overcommit\nspec: {resource: batch, cpu: {cel: "max(node.capacity.cpu - '
    "node.pods.filter(p, $p.band == 'prod').map(p, p.request.cpu).sum(), cpu('0'))\"}}"
)


def test_pods_that_ended() -> None:
    """A node with such pods shows what they count for, by amounts that it has."""
    [(example, _), *_] = _examples(POOL, "p.active && ", "")
    assert (example.old.value, example.new.value) == (64_000, 34_000)
    assert example.beyond == ""


def test_what_does_not_decide_is_left_out() -> None:
    """The capacity is read by the rule, but not where the labels are alike."""
    text = MINIMUM.replace("cpu('4')", "cpu('$')").replace(
        "cpu('2')", "(node.capacity.cpu >= cpu('32') ? cpu('3') : cpu('2'))"
    )
    text = text.replace("$ ?", "node.labels[?'t'].orValue('') == pod.labels[?'t'].orValue('-') ?")
    [(example, _)] = _examples(text.replace("pod.labels[?'t'].orValue('-')", "'a'"), "5", "6")
    assert dict(example.given) == {"node.labels": {"t": "a"}}


def test_amounts_that_no_cluster_has_are_said_to_be_such() -> None:
    """A difference at more than ten thousand cores alone."""
    [(example, _)] = _examples(
        MINIMUM, "node.capacity.cpu > cpu('20000')", "node.capacity.cpu > cpu('30000')"
    )
    assert example.beyond.endswith("only beyond 10,000 cores, as is proved")
