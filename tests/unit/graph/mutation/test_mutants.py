"""Mutants of expressions and documents, as data beside this file, and the files that they make."""

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.mutation import Mutant, mutants_of
from koordpolicy.graph.mutation.domains import domains_of
from koordpolicy.graph.mutation.expressions import changed, changes
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.unparse import unparse
from koordpolicy.language.documents import read_documents
from koordpolicy.source import read_tree
from tests.unit.graph.policies_text import compiled, document

HERE = Path(__file__).parent
PACK = "policies"


def _cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = YAML(typ="safe").load(HERE / name)
    return cases


def _told(mutant: Mutant) -> str:
    return f"{mutant.operator}: {mutant.before} -> {mutant.after}"


@pytest.mark.parametrize("case", _cases("expressions.yaml"), ids=lambda case: case["text"])
def test_changes_of_an_expression(case: dict[str, Any]) -> None:
    text = case["text"]
    tree = parse(text)
    found = list(
        changes(
            tree,
            domains_of([tree], thorough=case.get("thorough", False)),
            condition=case.get("condition", False),
        )
    )
    assert [
        f"{one.operator}: {text[one.old.start : one.old.end]} -> {unparse(one.new)}" for one in found
    ] == case["changes"]
    for one in found:
        assert unparse(parse(unparse(changed(tree, one)))) != unparse(tree)


@pytest.mark.parametrize("case", _cases("documents.yaml"), ids=lambda case: case["kind"])
def test_mutants_of_a_document(case: dict[str, Any]) -> None:
    made = compiled(document(case["kind"], "one", indent(case["spec"], "  ")))
    assert [_told(mutant) for mutant in mutants_of(made.units, thorough=case.get("thorough", False))] == case[
        "mutants"
    ]


def _own(files: dict[str, str]) -> list[Mutant]:
    made = Compiler().compile(Layer("own", files))
    assert made.graph is not None, [found.message for found in made.found]
    return list(mutants_of(made.units))


def test_every_mutant_of_the_pack_says_in_its_file_what_it_means_to() -> None:
    files = dict(read_tree([PACK]).files)
    mutants = _own(files)
    assert len(mutants) > 1_000
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    for mutant in mutants[::7]:
        found = Diagnostics()
        data: Any = read_documents(mutant.file, mutant.text, found)[mutant.unit.document.index].data
        assert not len(found)
        for step in mutant.path:
            data = data[step]
        assert data == mutant.value


def test_the_order_and_the_names_of_mutants_stay() -> None:
    files = dict(read_tree([PACK]).files)
    turned = dict(reversed(files.items()))
    assert [mutant.id for mutant in _own(files)] == [mutant.id for mutant in _own(turned)]


def test_another_word_is_noticed_by_a_case_that_expects_its_decision() -> None:
    rule = document("AdmissionRule", "teamed", "  require: {cel: pod.active}\n  enforcement: warn\n")
    found = [one for one in mutants_of(compiled(rule).units) if one.path == ("spec", "enforcement")]
    assert {one.noticed_by for one in found} == {"a case that expects `AdmissionRule/teamed.enforcement`"}
