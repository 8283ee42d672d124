"""The vectors' command counts honestly: whatever is not right has failed."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.__main__ import main
from tests.vectors.compare import AMOUNTS, EXACT, Comparison
from tests.vectors.files import UnreadableFile, Vector, read
from tests.vectors.run import find_runner, run
from tests.vectors.runners import RUNNERS, SHAPES
from tests.vectors.runners.runner import Runner, Unsupported

DOUBLE = Runner(lambda given: {"twice": 2 * given["n"]})  # type: ignore[operator]  # a number in these tests


def vector(kind: str = "double", given: Mapping[str, Any] | None = None, **expect: object) -> Vector:
    return Vector("some-file", kind, "a", {"n": 2} if given is None else given, expect)


def failures(*vectors: Vector, **runners: Runner) -> list[str | None]:
    table = {("own", kind): runner for kind, runner in {"double": DOUBLE, **runners}.items()}
    return [result.failure for result in run(vectors, (), table)]


def test_a_right_answer_passes_and_a_wrong_one_says_where() -> None:
    assert failures(vector(twice=4), vector(twice=5)) == [None, "twice: expected 5, found 4"]


def test_whatever_goes_wrong_in_a_runner_is_a_failure_of_its_case() -> None:
    def refuses(_: Mapping[str, object]) -> Mapping[str, object]:
        raise Unsupported("reservations")

    assert failures(
        vector("unknown"), vector(given={}), vector("refuses"), vector(twice=4), refuses=Runner(refuses)
    ) == ["no runner for this kind", "KeyError: 'n'", "not supported: reservations", None]


def test_an_input_that_is_not_read_as_a_whole_is_a_failure() -> None:
    def sums(given: Mapping[str, Any]) -> Mapping[str, object]:
        if "n" not in given:
            return {"sum": 0}
        return {"sum": given["n"] + sum(one["of"].get("a", 0) for one in given.get("more", ()))}

    more = {"n": 1, "more": [{"of": {"a": 2}}, {"of": {"a": 3, "b": 4}, "c": 5}]}
    cases = vector("sums", {"n": 1}, sum=1), vector("sums", {}, sum=0), vector("sums", more, sum=6)
    unread = "its runner does not read more[].c, more[].of.b"
    assert failures(*cases, sums=Runner(sums)) == [None, None, unread]
    passed_over = frozenset({"more[].c", "more[].of.b"})
    assert failures(*cases, sums=Runner(sums, irrelevant=passed_over)) == [None, None, None]


@pytest.mark.parametrize(
    "goes_through",
    [
        dict,
        list,
        lambda given: {**given},
        lambda given: list(given.values()),
        lambda given: list(given.items()),
        lambda given: given == {},
        json.dumps,
    ],
)
def test_who_goes_through_an_input_has_read_its_keys(goes_through: Callable[[Any], object]) -> None:
    def answer(given: Mapping[str, Any]) -> Mapping[str, object]:
        goes_through(given)
        return {}

    assert failures(vector("all", {"a": 1, "b": 2}), all=Runner(answer)) == [None]


@pytest.mark.parametrize(
    ("comparison", "expected", "found", "difference"),
    [
        (EXACT, {"a": 1}, {"a": 1.0}, None),
        (EXACT, {"a": 1}, {"a": True}, "a: expected 1, found True"),
        (EXACT, {"a": "1"}, {"a": 1}, "a: expected '1', found 1"),
        (EXACT, {"a": None}, {}, "a: expected None, found nothing"),
        (EXACT, {}, {"a": None}, "a: expected nothing, found None"),
        (EXACT, {"a": 0}, {}, "a: expected 0, found nothing"),
        (EXACT, {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b: expected 2, found 3"),
        (EXACT, {"a": [1]}, {"a": (1, 2)}, "a: expected 1 items [1], found (1, 2)"),
        (EXACT, {"a": []}, {"a": None}, "a: expected [], found None"),
        (EXACT, {"a": {}}, {"a": []}, "a: expected {}, found []"),
        (EXACT, {"a": 1}, {"a": 1 + 1e-9}, "a: expected 1, found 1.000000001"),
        (EXACT, {"a": 1}, {"a": float("nan")}, "a: expected 1, found nan"),
        (AMOUNTS, {"a": 0}, {"b": 0}, None),
        (AMOUNTS, {"a": False}, {}, "a: expected False, found nothing"),
        (AMOUNTS, {}, {"b": 1}, "b: expected nothing, found 1"),
        (Comparison(relative=1e-6), {"a": 1e9}, {"a": 1e9 + 1}, None),
        (Comparison(absolute=1), {"a": 5}, {"a": 6}, None),
        (Comparison(absolute=1), {"a": 5}, {"a": 7}, "a: expected 5, found 7"),
        (Comparison(only_expected=True), {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, None),
        (Comparison(only_expected=True), {"a": 1}, {"d": 3}, "a: expected 1, found nothing"),
    ],
)
def test_comparison(comparison: Comparison, expected: object, found: object, difference: str | None) -> None:
    assert comparison.difference(expected, found) == difference


MANAGER = Runner(lambda _: {})
AGENT = Runner(lambda _: {})
SHARED = {("manager", "batch_resource"): MANAGER, ("node-agent", "batch_resource"): AGENT}


@pytest.mark.parametrize(
    ("stem", "given", "expected"),
    [
        ("anything", {"node": {}, "strategy": {}}, MANAGER),
        ("anything", {"qos": "BE", "spec": None}, AGENT),
        ("manager", {"qos": "BE", "spec": None}, AGENT),
        ("manager", {}, MANAGER),
        ("node-agent", {"node": {}, "spec": {}}, AGENT),
        ("anything", {}, None),
    ],
)
def test_a_kind_of_two_domains_is_told_by_shape_and_then_by_file(
    stem: str, given: Mapping[str, object], expected: Runner | None
) -> None:
    assert find_runner(Vector(stem, "batch_resource", "a", given, {}), SHARED) is expected


def test_a_shape_never_falls_to_the_other_domain() -> None:
    only_agent = {("node-agent", "batch_resource"): AGENT}
    assert find_runner(Vector("x", "batch_resource", "a", {"node": {}}, {}), only_agent) is None


def test_every_kind_of_two_domains_has_its_shapes() -> None:
    kinds = [kind for _, kind in RUNNERS]
    assert {kind for kind in kinds if kinds.count(kind) > 1} <= set(SHAPES)


CASE = {"kind": "shares_weight", "name": "n", "input": {"shares": 2}, "expect": {"weight": 1}}


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_the_command_reads_both_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    path = tmp_path / f"hidden.{ending}"
    path.write_text(
        json.dumps({"vectors": [CASE, {**CASE, "kind": "pick"}, {**CASE, "expect": {"weight": 2}}]})
    )
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "hidden: pick: n: no runner for this kind",
        "hidden: shares_weight: n: weight: expected 2, found 1",
        "1 passed, 2 failed",
    ]
    assert main([str(path), str(path), "--kind", "shares_weight", "--kind", "pick"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 4 failed"


def test_the_command_succeeds_when_all_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"vectors": [CASE]}))
    assert main([str(path), "--kind", "shares_weight"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_a_kind_that_does_not_occur_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"vectors": [CASE]}))
    assert main([str(path), "--kind", "share_weight"]) == 1
    assert "no case of kind share_weight" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"vectors": {}}', '{"vectors": [{"kind": "a", "name": "b", "input": {}}]}', "\udcff"],
)
def test_an_unreadable_file_is_an_error_of_its_own(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UnreadableFile, match=r"bad\.json"):
        read(path)
    assert main([str(path)]) == 2
    assert main([str(tmp_path / "absent.yaml")]) == 2
