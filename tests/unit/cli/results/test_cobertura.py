"""Coverage as Cobertura XML: what its DTD asks for, and the figures of every branch."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from koordpolicy.cli.main import main
from tests.unit.cli.results.test_lcov import BUNDLE

_RATES = {"line-rate", "branch-rate", "complexity"}
ELEMENTS: dict[str, tuple[str, set[str], set[str]]] = {
    "coverage": (
        r"(sources )?packages ",
        {
            *_RATES,
            "lines-covered",
            "lines-valid",
            "branches-covered",
            "branches-valid",
            "version",
            "timestamp",
        },
        set(),
    ),
    "sources": (r"(source )*", set(), set()),
    "source": (r"", set(), set()),
    "packages": (r"(package )*", set(), set()),
    "package": (r"classes ", {"name", *_RATES}, set()),
    "classes": (r"(class )*", set(), set()),
    "class": (r"methods lines ", {"name", "filename", *_RATES}, set()),
    "methods": (r"(method )*", set(), set()),
    "lines": (r"(line )*", set(), set()),
    "line": (r"(conditions )*", {"number", "hits"}, {"branch", "condition-coverage"}),
    "conditions": (r"(condition )*", set(), set()),
    "condition": (r"", {"number", "type", "coverage"}, set()),
}
"""What coverage-04.dtd declares: the children in their order, attributes that must be there, and those that may."""


def _report(capsys: pytest.CaptureFixture[str], *arguments: str) -> ET.Element:
    assert main(["test", "-o", "cobertura", *arguments]) == 0
    text = capsys.readouterr().out
    assert "<!DOCTYPE coverage SYSTEM" in text
    return ET.fromstring(text)


def _valid(top: ET.Element) -> None:
    assert top.tag == "coverage"
    for element in top.iter():
        children, required, optional = ELEMENTS[element.tag]
        assert re.fullmatch(children, "".join(f"{child.tag} " for child in element)), element.tag
        assert required <= set(element.attrib) <= required | optional, element.tag
        assert element.tag == "source" or not (element.text or "").strip()


def test_the_pack_is_valid_by_the_dtd(capsys: pytest.CaptureFixture[str]) -> None:
    top = _report(capsys, "policies")
    _valid(top)
    lines = list(top.iter("line"))
    assert len(lines) == int(top.attrib["lines-valid"]) > 100
    assert sum(line.attrib["hits"] != "0" for line in lines) == int(top.attrib["lines-covered"])
    parts = [re.search(r"\((\d+)/(\d+)\)", line.attrib["condition-coverage"]) for line in lines]
    assert sum(int(part[2]) for part in parts if part) == int(top.attrib["branches-valid"])
    assert sum(int(part[1]) for part in parts if part) == int(top.attrib["branches-covered"])


def test_every_branch_stands_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/own.yaml").write_text(BUNDLE, encoding="utf-8")
    top = _report(capsys, "in")
    _valid(top)
    assert {name: top.attrib[name] for name in ("line-rate", "branch-rate")} == {
        "line-rate": "0.5",
        "branch-rate": "0.3333",
    }
    assert [(one.attrib["name"], one.attrib["branch-rate"]) for one in top.iter("package")] == [
        ("in", "0.3333")
    ]
    assert [one.attrib["filename"] for one in top.iter("class")] == ["in/own.yaml"]
    assert [
        (
            line.attrib["number"],
            line.attrib["hits"],
            line.attrib["condition-coverage"],
            [(part.attrib["type"], part.attrib["coverage"]) for part in line.iter("condition")],
        )
        for line in top.iter("line")
    ] == [
        ("11", "2", "50% (1/2)", [("arm", "100%"), ("arm", "0%")]),
        ("12", "0", "0% (0/1)", [("formula", "0%")]),
    ]
