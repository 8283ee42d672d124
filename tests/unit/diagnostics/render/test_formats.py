"""What holds for every format, and one golden file for each."""

import json
import random
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from koordpolicy import __version__
from koordpolicy.diagnostics import Diagnostic, Severity, Span
from koordpolicy.diagnostics.escaping import encodable, one_line, safe
from koordpolicy.diagnostics.render import RENDERERS, Report, render
from tests.conftest import REPOSITORY
from tests.unit.diagnostics.render.sample import FINDINGS, SOURCES, findings, sources

SARIF = Draft7Validator(json.loads((REPOSITORY / "tests/data/sarif/sarif-schema-2.1.0.json").read_text()))
FORMATS = pytest.mark.parametrize("format", RENDERERS)


@FORMATS
def test_sample(format: str, golden: Callable[[Path, str], None]) -> None:
    text = render(format, FINDINGS, SOURCES).replace(f'"{__version__}"', '"VERSION"')
    golden(Path(__file__).parent / "golden" / f"sample.{format}", text)


@FORMATS
def test_the_order_of_findings_does_not_matter(format: str) -> None:
    shuffled = random.Random(1).sample(FINDINGS, len(FINDINGS))
    assert render(format, shuffled, SOURCES) == render(format, FINDINGS, SOURCES)


@FORMATS
def test_output_ends_with_one_newline(format: str) -> None:
    assert re.search(r"[^\n]\n\Z", render(format, FINDINGS, SOURCES))


def test_nothing_to_say() -> None:
    assert render("text", [], SOURCES) == ""
    assert render("github", [], SOURCES) == ""
    assert json.loads(render("gitlab", [], SOURCES)) == []
    assert json.loads(render("json", [], SOURCES))["findings"] == []
    assert json.loads(render("sarif", [], SOURCES))["runs"][0]["results"] == []
    suites = ET.fromstring(render("junit", [], SOURCES))
    assert [(suite.get("name"), suite.get("failures")) for suite in suites] == [
        (file, "0") for file in sorted(SOURCES)
    ]


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(
        ValueError, match="unknown format `yaml`, known are text, json, sarif, github, gitlab, junit"
    ):
        render("yaml", [], {})


READERS: dict[str, Callable[[str], object]] = {
    "text": str,
    "json": json.loads,
    "sarif": json.loads,
    "github": str,
    "gitlab": json.loads,
    "junit": ET.fromstring,
}


@FORMATS
@given(st.lists(findings, max_size=5), sources)
def test_whatever_files_and_messages_hold_the_output_is_valid_and_safe(
    format: str, found: list[Diagnostic], texts: dict[str, str]
) -> None:
    text = render(format, found, texts)
    text.encode("utf-8")
    READERS[format](text)
    unsafe = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert unsafe == set()


MANY = [
    Diagnostic("KP308", f"warning {n}", Span.at("a.yaml", n), severity=Severity.WARNING) for n in range(1, 50)
] + [Diagnostic("KP104", "the error", Span.at("z.yaml"))]


def test_beyond_the_limit_errors_come_first_and_the_rest_is_counted() -> None:
    text = render("text", MANY, {}, limit=10)
    assert "the error" in text
    assert text.count("warning[") == 9
    assert text.endswith("1 error and 49 warnings (40 warnings more than the 10 shown)\n")
    document = json.loads(render("json", MANY, {}, limit=10))
    assert document["counts"] == {"error": 1, "warning": 49, "note": 0}
    assert document["omitted"] == {"error": 0, "warning": 40, "note": 0}
    assert render("github", MANY, {}, limit=10).endswith(
        "::notice title=koordpolicy::40 warnings more are not listed\n"
    )
    assert "40 warnings more are not listed" in render("junit", MANY, {}, limit=10)
    run = json.loads(render("sarif", MANY, {}, limit=10))["runs"][0]
    assert "40 warnings" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


@FORMATS
def test_limit_zero_shows_everything(format: str) -> None:
    text = render(format, MANY, {}, limit=0)
    assert all(found.message in text for found in MANY)


def sarif_problems(text: str) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in SARIF.iter_errors(json.loads(text))]


def test_the_sarif_schema_refuses_what_is_none() -> None:
    assert sarif_problems('{"version": "2.1.0", "runs": [{"results": []}]}')


@given(st.lists(findings, max_size=6), sources, st.integers(0, 4))
def test_sarif_follows_its_schema(found: list[Diagnostic], texts: dict[str, str], limit: int) -> None:
    text = render("sarif", found, texts, limit=limit)
    assert sarif_problems(text) == []
    run = json.loads(text)["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9\-._~:/%]+", uri), "a URI reference has no other characters"


def test_a_fingerprint_does_not_depend_on_the_lines_above() -> None:
    def fingerprint(found: Diagnostic, text: str) -> Any:
        log = json.loads(render("sarif", [found], {"a.yaml": text}))
        return log["runs"][0]["results"][0]["partialFingerprints"]

    before = fingerprint(Diagnostic("KP104", "unknown", Span.at("a.yaml", 1, 3)), "  x: 1\n")
    after = fingerprint(Diagnostic("KP104", "unknown", Span.at("a.yaml", 3, 3)), "# new\n\n  x: 1\n")
    other = fingerprint(Diagnostic("KP104", "unknown", Span.at("a.yaml", 1, 3)), "  y: 1\n")
    assert before == after != other


@given(st.lists(findings, max_size=6), sources)
def test_json_leaves_nothing_out(found: list[Diagnostic], texts: dict[str, str]) -> None:
    document = json.loads(render("json", found, texts))
    assert sorted(
        (f["code"], f["message"], f["file"], f["start"]["line"]) for f in document["findings"]
    ) == sorted((f.code, safe(f.message), one_line(f.span.file), f.span.start.line) for f in found)
    assert sum(document["counts"].values()) == len(found)
    fixes = [one["fix"]["replacement"] for one in document["findings"] if one["fix"]]
    kept = [one.fix.replacement for one in found if one.fix is not None]
    assert sorted(fixes) == sorted(one for one in kept if encodable(one) == one)


def unescaped(text: str) -> str:
    for written, meant in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(written, meant)
    return text


@given(st.lists(findings, min_size=1, max_size=6), sources)
def test_github_gets_one_command_a_finding_and_no_other(
    found: list[Diagnostic], texts: dict[str, str]
) -> None:
    lines = render("github", found, texts).split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(found)
    for line, finding in zip(lines, Report.of(found, texts).findings, strict=True):
        match = re.fullmatch(
            r"::(error|warning|notice) file=([^,]*),line=(\d+)(?:,[^:]*)?,title=[^:,]*::(.*)", line, re.DOTALL
        )
        assert match is not None, line
        assert "\r" not in line
        assert unescaped(match[2]) == finding.span.file
        assert unescaped(match[4]).startswith(finding.message)


@given(st.lists(findings, max_size=6), sources)
def test_junit_adds_up(found: list[Diagnostic], texts: dict[str, str]) -> None:
    top = ET.fromstring(render("junit", found, texts))
    assert top.tag == "testsuites"
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    assert top.get("failures") == str(errors) == str(len(top.findall("./testsuite/testcase/failure")))
    assert top.get("tests") == str(len(top.findall("./testsuite/testcase")))
    assert len(top) == len({one_line(file) for file in (*texts, *(finding.span.file for finding in found))})
    for suite in top:
        assert suite.tag == "testsuite"
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert all(case.get("name") and case.get("classname") for case in suite.findall("testcase"))


def test_gitlab_tells_equal_findings_apart_and_knows_them_again() -> None:
    moved = [Diagnostic("KP104", "the same", Span.at("a.yaml", line)) for line in (3, 9)]
    before = json.loads(render("gitlab", moved, {}))
    assert len({one["fingerprint"] for one in before}) == 2
    later = [Diagnostic("KP104", "the same", Span.at("a.yaml", line)) for line in (30, 90)]
    again = json.loads(render("gitlab", later, {}))
    assert [one["fingerprint"] for one in again] == [one["fingerprint"] for one in before]
    assert [one["location"]["lines"]["begin"] for one in again] == [30, 90]
