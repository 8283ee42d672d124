"""Differences between revisions: cases as data, and what must hold of all of them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy import resources
from koordpolicy.cli.difference.shown import applies_to
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.graph.diff import Difference, Edit, Example, compare
from koordpolicy.graph.diff.words import moves_text, pair_text
from koordpolicy.source import read_tree

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("cases.yaml"))
MARKS = {"added": "+", "removed": "-", "changed": "~"}
BUNDLE = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: b}
spec: {extends: [koordinator]}
"""


@cache
def compiler() -> Compiler:
    root = resources.policies()
    pack = Layer("koordinator", dict(read_tree([root]).files))
    return Compiler(lambda name: pack if name == "koordinator" else None)


def compiled(files: dict[str, str]) -> Compilation:
    texts = {f"{name}.yaml": _completed(text) for name, text in files.items()}
    return compiler().compile(Layer("bundle", {"koordpolicy.yaml": BUNDLE, **texts}))


def _completed(text: str) -> str:
    name = "" if "metadata:" in text else "metadata: {name: one}\n"
    return f"apiVersion: koordpolicy.io/v1alpha1\n{name}{text}"


def graph(files: dict[str, str]) -> RuleGraph:
    found = compiled(files)
    assert found.graph is not None, [one.message for one in found.found]
    return found.graph


def lines(difference: Difference) -> Iterator[str]:
    """A difference in short lines."""
    for change in difference.decisions:
        for edit in change.edits:
            yield f"{change.decision} | {_edit(edit)}"
        if not change.edits:
            yield f"{change.decision} | because of {change.cause}"
        for effect in change.effects:
            yield f"  {effect.decision} | {_example(effect.example)}"
    for setting in difference.settings:
        yield f"setting {setting.document} {setting.path}: {setting.old} -> {setting.new}"
    for one in difference.documents:
        yield f"{one.how} {one.document}" + (f" ({one.says})" if one.says else "")
    for pair in difference.renamed:
        yield "renamed {} to {}".format(*pair)
    for name in difference.equal:
        yield f"equal {name}"
    for left in difference.open:
        yield f"gave up on {left.decision}: {left.why}"


def _edit(edit: Edit) -> str:
    shown = "no example" if edit.example is None else _example(edit.example)
    where = edit.where if edit.was is None else applies_to(edit)
    also = "" if edit.also is None else f" and {_example(edit.also)}"
    return f"{MARKS[edit.how]} {where}".rstrip() + f" | {shown}{also}"


def _example(example: Example) -> str:
    pair = pair_text(example.old, example.new)
    text = pair if example.constant or not example.on else f"{pair} on {example.on}"
    chosen = [fact for fact in example.facts if fact.path in example.selecting]
    text += "" if example.moves is None else f"; {moves_text(example.moves)}"
    return text + "".join(f" with {fact.path} = {fact.value}" for fact in chosen)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_difference(case: dict[str, Any]) -> None:
    if "refused" in case:
        assert compiled(case[case["refused"]]).graph is None
        return
    assert list(lines(compare(graph(case["old"]), graph(case["new"])))) == case["expect"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if "refused" not in case], ids=lambda case: str(case["name"])
)
def test_back_is_as_far_as_there(case: dict[str, Any]) -> None:
    """The same decisions differ the other way round; a revision differs in nothing from itself."""
    old, new = graph(case["old"]), graph(case["new"])
    there, back = compare(old, new), compare(new, old)
    assert {change.decision for change in there.decisions} == {change.decision for change in back.decisions}
    assert compare(old, old).empty
    assert compare(new, new).empty
