"""What `check` and `explain` say of PolicyExceptions at a moment."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

EXCEPTION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: sale}
spec:
  owner: shop team
  reason: the sale needs more room for services
  from: 2026-11-20
  expires: 2026-11-30
  match: {nodes: {matchLabels: {pool: shop}}}
  overrides:
    CPUSuppress.parameters.threshold: 50%
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "sale.yaml"
    path.write_text(EXCEPTION, "utf-8")
    return str(path)


def run(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    return main(arguments, Terminal(out, out)), out.getvalue()


@pytest.mark.parametrize(
    ("at", "code", "parts"),
    [
        (
            "2026-10-01",
            0,
            ["exceptions to come", "sale: from 2026-11-20 until 2026-11-30 (61 days left), shop team"],
        ),
        ("2026-11-20", 0, ["exceptions in force", "the sale needs more room", "warning[KP702]"]),
        ("2026-12-01", 1, ["error[KP701]: the exception `sale` of shop team has been over for less than an"]),
    ],
)
def test_check_tells_what_holds_what_ends_and_what_is_over(
    at: str, code: int, parts: list[str], file: str
) -> None:
    given, text = run("check", file, "--at", at)
    assert given == code
    for part in parts:
        assert part in text
    assert ("exceptions in force" in text) is (at == "2026-11-20")


def test_a_warning_fails_only_a_strict_check(file: str) -> None:
    assert run("check", "--strict", file, "--at", "2026-11-20")[0] == 1
    assert run("check", "--strict", file, "--at", "2026-10-01")[0] == 0


def test_programs_get_findings_alone(file: str) -> None:
    report = json.loads(run("check", file, "--at", "2026-12-01", "-o", "json")[1])
    assert [found["code"] for found in report["findings"]] == ["KP701"]


def test_a_moment_that_is_none(file: str) -> None:
    assert run("check", file, "--at", "soon") == (
        2,
        "koordpolicy check: `soon` is no time; write `2026-07-01T18:00:00Z` or `2026-07-01`\n",
    )


def test_explain_names_exception_owner_and_end(file: str, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text("{node: {labels: {pool: shop}}}", "utf-8")
    asked = ("explain", "CPUSuppress.parameters.threshold", "-p", file, "--given", str(given))
    code, text = run(*asked, "--at", "2026-11-25")
    assert code == 0
    for part in ("= 50%", "PolicyException/sale", "shop team", "2026-11-30"):
        assert part in text
    assert "PolicyException" not in run(*asked, "--at", "2026-12-25")[1]
    answer = json.loads(run(*asked, "--at", "2026-11-25", "-o", "json")[1])[0]
    assert answer["rules"][0]["exception"] == {
        "owner": "shop team",
        "reason": "the sale needs more room for services",
        "expires": "2026-11-30",
    }


def test_the_moment_may_stand_among_the_facts(file: str, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text('{node: {labels: {pool: shop}}, now: "2026-11-25T00:00:00Z"}', "utf-8")
    text = run("explain", "CPUSuppress.parameters.threshold", "-p", file, "--given", str(given))[1]
    assert "= 50%" in text
