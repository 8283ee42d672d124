"""`koordpolicy explain quota`: on manifests, as a user runs it."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

_LABEL = "quota.scheduling.koordinator.sh/name"


def explained(
    folder: Path, asks: Mapping[str, int], *arguments: str, placed: bool = False
) -> tuple[int, str, str]:
    """What is said of quotas `a` (4 of 10 cores guaranteed) and `b` (6) whose pods ask for so many cores, or have them: code, output, errors."""
    room = {"cpu": "10", "memory": "8Gi", "pods": "10"}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": room, "allocatable": room}}
    ]  # fmt: skip
    objects += [
        {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"min": {"cpu": least}, "max": {"cpu": "10"}},
        }
        for name, least in (("a", "4"), ("b", "6"))
    ]  # fmt: skip
    objects += [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"of-{name}", "namespace": "default", "uid": name, "labels": {_LABEL: name}},
            "spec": {
                "schedulerName": "koord-scheduler",
                "nodeName": "n1" if placed else "",
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpus)}}}],
            },
            "status": {"phase": "Running" if placed else "Pending"},
        }
        for name, cpus in asks.items()
    ]  # fmt: skip
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "utf-8")
    out, err = io.StringIO(), io.StringIO()
    code = main(("explain", "quota", *arguments, "-f", str(file)), Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("asks", "has"),
    [
        ({"a": 7}, {"a": 7, "b": 0}),  # what nobody asks for is lent
        ({"a": 7, "b": 2}, {"a": 7, "b": 2}),
        ({"a": 7, "b": 9}, {"a": 4, "b": 6}),  # each has what it is guaranteed
        ({"a": 3, "b": 9}, {"a": 3, "b": 7}),
    ],
)
def test_what_a_quota_may_use(tmp_path: Path, asks: Mapping[str, int], has: Mapping[str, int]) -> None:
    for name, cores in has.items():
        code, out, err = explained(tmp_path, asks, name)
        assert (code, err) == (0, "")
        assert out.startswith(f"{name} may use {cores} cpu\n")
        found = json.loads(explained(tmp_path, asks, name, "-o", "json")[1])
        assert (found["quota"], found["limit"]) == (name, {"cpu": cores * 1000})
        [level] = found["levels"]
        assert {one["quota"]: one["runtime"] for one in level["shares"]} == {
            one: number * 1000 for one, number in has.items()
        }
        assert set(found["rules"]) >= {"sharing.min", "sharing.max", "scheduling.limit"}


@pytest.mark.parametrize(
    ("used", "said", "lending"),
    [
        (
            {"a": 9},
            "a uses more than it is guaranteed: 5 of b.",
            {"loans": [{"lender": "b", "borrower": "a", "amount": 5000}], "free": {}, "beyond": {}},
        ),
        ({"a": 4, "b": 6}, "", {"loans": [], "free": {}, "beyond": {}}),
    ],
)
def test_who_lends_to_whom(
    tmp_path: Path, used: Mapping[str, int], said: str, lending: Mapping[str, Any]
) -> None:
    out = explained(tmp_path, used, "a", placed=True)[1]
    assert said in out
    assert ("guaranteed:" in out) == bool(said)
    found = json.loads(explained(tmp_path, used, "b", "-o", "json", placed=True)[1])
    assert found["levels"][0]["lending"] == lending
    assert ("b lends 5 to a." in explained(tmp_path, used, "b", placed=True)[1]) == bool(said)


def test_one_that_is_not_there(tmp_path: Path) -> None:
    code, out, err = explained(tmp_path, {"a": 1}, "c")
    assert (code, out) == (2, "")
    assert "`c`" in err
