"""`koordpolicy explain move`: whether a pod would leave its node, why or why not, and where the scheduler would put it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.model.time import time_text
from koordpolicy.runtime.clock import now_ns
from tests.unit.descheduler import clusters

BUNDLE = "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\nmetadata: {name: own}\nspec: {extends: [koordinator]}\n"
ON: Any = {
    "apiVersion": "koordpolicy.io/v1alpha1",
    "kind": "Descheduling",
    "metadata": {"name": "koord-descheduler"},
    "spec": {
        "strategies": [
            {
                "name": "LowNodeLoad",
                "enabled": True,
                "candidates": {"cel": "pod.name != 'stays'"},
                "load": {"high": {"cpu": "50%"}, "low": {"cpu": "40%"}},
            }
        ]
    },
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pods on a node that is too full, and an empty one; a picture of them, and policies."""
    pods = [clusters.pod(name, "full", "2") for name in ("first", "stays")]
    for one in pods:
        one["spec"]["schedulerName"] = "koord-scheduler"
    kinds = {"v1/Node": [clusters.node("full"), clusters.node("empty")], "v1/Pod": pods}
    kinds["slo.koordinator.sh/v1alpha1/NodeMetric"] = [
        clusters.report("full", dict.fromkeys(("first", "stays"), "3")),
        clusters.report("empty", {}),
    ]
    for one in kinds["slo.koordinator.sh/v1alpha1/NodeMetric"]:
        one["status"]["updateTime"] = time_text(now_ns())  # a picture of now
    items: list[Any] = [
        {"apiVersion": of.rpartition("/")[0], "kind": of.rpartition("/")[2], **one}
        for of, objects in kinds.items()
        for one in objects
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "koordpolicy.yaml").write_text(BUNDLE)
    (tmp_path / "own" / "on.yaml").write_text(json.dumps(ON))
    return tmp_path


def _explained(site: Path, name: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["explain", "move", name, "-f", str(site / "cluster.json"), *more]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_pod_that_would_go(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = _explained(site, "first", capsys, "-p", str(site / "own"))
    assert "default/first would leave full" in out
    assert "node is overutilized, node cpu usage(60.00%)>threshold(50.00%)" in out
    assert "The scheduler would put it on empty." in out


def test_a_pod_that_stays_and_every_reason(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(_explained(site, "stays", capsys, "-p", str(site / "own"), "-o", "json"))
    (profile,) = found["profiles"]
    assert not profile["moves"]
    (stays,) = profile["stays"]
    assert stays["condition"] == "strategies[LowNodeLoad]"
    assert "does not mean it: its `candidates` asks for `pod.name != 'stays'` (" in stays["reason"]
    assert stays["reason"].endswith("on.yaml:1), and `pod.name` is `stays`")
    assert found["scheduler"]["node"] == "empty"


@pytest.mark.parametrize(
    "asked", ["pod.namespace in ['shop', 'search']", "variables.ours", "pod.namespace == parameters.ours"]
)
def test_a_namespace_that_a_strategy_leaves_alone_is_named(
    site: Path, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    made = copy.deepcopy(ON)
    made["spec"]["strategies"][0]["candidates"] = {"cel": asked}
    made["spec"]["variables"] = [{"name": "ours", "expression": "pod.namespace == 'shop'"}]
    if "parameters" in asked:  # one that nothing reads is an error
        made["spec"]["parameters"] = {"ours": {"type": "string", "value": "shop"}}
    (site / "own" / "on.yaml").write_text(json.dumps(made))
    found = json.loads(_explained(site, "first", capsys, "-p", str(site / "own"), "-o", "json"))
    (stays,) = found["profiles"][0]["stays"]
    assert f"its `candidates` asks for `{asked}` (" in stays["reason"]
    assert stays["reason"].endswith(", and `pod.namespace` is `default`")


def test_nobody_goes_by_the_pack_alone(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = _explained(site, "first", capsys)
    assert "default/first would stay on full" in out
    assert "strategies[LowNodeLoad]: the strategy is switched off" in out


def test_a_pod_that_failed_is_asked_about_by_who_looks_at_such(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site / "cluster.json"
    cluster = json.loads(path.read_text())
    (failed,) = [one for one in cluster["items"] if one["metadata"]["name"] == "first"]
    failed["status"] = {"phase": "Failed", "reason": "Evicted"}
    path.write_text(json.dumps(cluster))
    own = [{"name": "LowNodeLoad", "enabled": True}, {"name": "RemoveFailedPods", "enabled": True}]
    (site / "own" / "on.yaml").write_text(json.dumps({**ON, "spec": {"strategies": own}}))
    out = _explained(site, "first", capsys, "-p", str(site / "own"))
    assert "default/first would leave full" in out
    assert "it failed" in out


@pytest.mark.parametrize(
    ("owner", "closed", "told"),
    [
        ("web", False, "1 other goes before it"),
        ("", False, "beside the others it need not go"),
        ("web", True, "no other node has room for it"),
    ],
)
def test_one_reason_is_told_of_a_strategy_that_passes_a_pod_over(
    site: Path, capsys: pytest.CaptureFixture[str], owner: str, closed: bool, told: str
) -> None:
    path = site / "cluster.json"
    cluster = json.loads(path.read_text())
    for one in cluster["items"]:
        metadata = one["metadata"]
        if one["kind"] == "Pod":
            name = owner or metadata["name"]
            of = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": name,
                "uid": name,
                "controller": True,
            }
            metadata["ownerReferences"] = [of]
        elif metadata["name"] == "empty" and one["kind"] == "Node":
            one.setdefault("spec", {})["unschedulable"] = closed
    path.write_text(json.dumps(cluster))
    own = [{"name": "RemoveDuplicates", "enabled": True}]
    (site / "own" / "on.yaml").write_text(json.dumps({**ON, "spec": {"strategies": own}}))
    found = [
        json.loads(_explained(site, name, capsys, "-p", str(site / "own"), "-o", "json"))["profiles"][0]
        for name in ("first", "stays")
    ]
    assert told in [stays["reason"] for one in found for stays in one["stays"]]
