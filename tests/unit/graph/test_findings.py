"""What the compiler refuses, and that it says all of it at once."""

import pytest

from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.passes import conflicts
from tests.unit.graph.policies_text import BUNDLE, codes, compiled, document

TARGET = "  target: {cel: node.capacity.cpu}\n"


def suppress(name: str, *lines: str, target: str = TARGET) -> str:
    return document("CPUSuppress", name, "".join(f"  {line}\n" for line in lines) + target)


@pytest.mark.parametrize(
    ("name", "documents", "expected"),
    [
        ("one document", [suppress("a")], []),
        ("equal values are no conflict", [suppress("a"), suppress("b")], []),
        (
            "two documents say different things about everything",
            [suppress("a"), suppress("b", target="  target: 4\n")],
            ["KP301"],
        ),
        (
            "a higher precedence settles it, and what it outranks everywhere is dead",
            [suppress("a"), suppress("b", "precedence: 1", target="  target: 4\n")],
            ["KP304"],
        ),
        (
            "different pools never meet",
            [
                suppress("a", "match: {nodes: {matchLabels: {pool: x}}}"),
                suppress("b", "match: {nodes: {matchLabels: {pool: y}}}", target="  target: 4\n"),
            ],
            [],
        ),
        (
            "pools by different labels may meet",
            [
                suppress("a", "match: {nodes: {matchLabels: {pool: x}}}"),
                suppress("b", "match: {nodes: {matchLabels: {zone: y}}}", target="  target: 4\n"),
            ],
            ["KP301"],
        ),
        (
            "intervals that do not meet",
            [
                suppress("a", """match: {condition: 'node.capacity.cpu < cpu("8")'}"""),
                suppress(
                    "b", """match: {condition: 'node.capacity.cpu >= cpu("8")'}""", target="  target: 4\n"
                ),
            ],
            [],
        ),
        (
            "intervals that meet at one value",
            [
                suppress("a", """match: {condition: 'node.capacity.cpu <= cpu("8")'}"""),
                suppress(
                    "b", """match: {condition: 'node.capacity.cpu >= cpu("8")'}""", target="  target: 4\n"
                ),
            ],
            ["KP301"],
        ),
        (
            "a condition that contradicts itself",
            [suppress("a", """match: {condition: 'node.name == "a" && node.name == "b"'}""")],
            ["KP303"],
        ),
        (
            "variables in a circle",
            [
                suppress(
                    "a",
                    "variables: [{name: x, expression: variables.y}, {name: y, expression: variables.x}]",
                    target="  target: {cel: variables.x}\n",
                )
            ],
            ["KP302"],
        ),
        (
            "parameters in a circle",
            [
                suppress(
                    "a",
                    "parameters:",
                    "  x: {type: cpu, value: {cel: parameters.y}}",
                    "  y: {type: cpu, value: {cel: parameters.x}}",
                    target="  target: {cel: parameters.x}\n",
                )
            ],
            ["KP302"],
        ),
        ("a root of another kind", [suppress("a", target="  target: {cel: pod.request.cpu}\n")], ["KP202"]),
        ("a variable nobody uses", [suppress("a", "variables: [{name: x, expression: '1'}]")], ["KP308"]),
        ("a parameter nobody reads", [suppress("a", "parameters: {x: 1}")], ["KP305"]),
        ("the same name twice", [suppress("a"), suppress("a")], ["KP109"]),
        (
            "several mistakes, reported together",
            [
                suppress(
                    "a", target="  target: {cel: node.capcity.cpu}\n  minimum: {cel: node.capacity.memory}\n"
                )
            ],
            ["KP203", "KP208"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_findings(name: str, documents: list[str], expected: list[str]) -> None:
    assert codes(*documents) == expected


def test_a_conflict_shows_an_input_on_which_both_apply() -> None:
    first = suppress("a", "match: {nodes: {matchLabels: {pool: x}}}")
    second = suppress(
        "b", """match: {nodes: {matchExpressions: [{key: gpu, operator: Exists}]}}""", target="  target: 4\n"
    )
    (found,) = compiled(first, second).found
    assert found.notes[1].message == "both apply to: node.labels[gpu] = any, node.labels[pool] = x"


NAMES = [
    suppress("a", """match: {condition: "node.name.startsWith('a')"}""", target="  target: 1\n"),
    suppress("b", """match: {condition: "node.name.endsWith('b')"}""", target="  target: 2\n"),
    suppress("c", """match: {condition: "node.name.contains('c')"}""", target="  target: 3\n"),
]


def test_pairs_that_are_not_asked_about_are_told_in_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "MAX_ASKED", 1)
    tie, open_ = compiled(*NAMES).found
    assert (tie.code, open_.code) == ("KP301", "KP313")
    assert open_.message == "`CPUSuppress/c` and `CPUSuppress/a` may both decide `CPUSuppress.target`"
    assert open_.notes[-1].message == "so it is of 1 more, such as `CPUSuppress/b` and `CPUSuppress/c`"


def test_pairs_that_are_not_looked_at_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "MAX_PAIRS", 1)
    found = [one for one in compiled(*NAMES).found if one.code == "KP313"]
    assert [one.message for one in found] == [
        "`CPUSuppress.target` has 3 rules, too many to look at all pairs of them"
    ]


def test_a_pack_may_be_overridden_without_a_finding() -> None:
    assert codes(suppress("ours", target="  target: 4\n"), pack=suppress("theirs")) == []


def test_unchanged_files_are_not_compiled_again() -> None:
    compiler = Compiler()
    files = {"koordpolicy.yaml": BUNDLE, "a.yaml": suppress("a"), "b.yaml": suppress("b")}
    first = compiler.compile(Layer("test", files))
    second = compiler.compile(Layer("test", {**files, "b.yaml": suppress("b") + "# changed\n"}))
    kept = {unit.id: unit.spec for unit in first.units}
    again = {unit.id: unit.spec for unit in second.units}
    assert kept["CPUSuppress/a"] is again["CPUSuppress/a"]
    assert kept["CPUSuppress/b"] is not again["CPUSuppress/b"]
