"""`koordpolicy explain gang`: on manifests, as a user runs it."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

_LABEL = "pod-group.scheduling.sigs.k8s.io"


def explained(
    folder: Path,
    cpus: str,
    pods: int,
    *more: str,
    group: bool = True,
    there: Sequence[tuple[str, int, str]] = (),
    priority: int = 0,
) -> tuple[int, str, str]:
    """What is said of a gang of four on one node: the code, what is printed, what is told beside. `there` are other pods of two
    cores by name, with their priorities and nodes.
    """
    room = {"cpu": cpus, "memory": "8Gi", "pods": "10"}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": room, "allocatable": room}}
    ]  # fmt: skip
    if group:
        objects.append(
            {
                "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
                "metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 4},
            }
        )  # fmt: skip
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    objects += [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"w{at}", "namespace": "default", "uid": f"u{at}", "labels": {_LABEL: "train"}},
            "spec": {"schedulerName": "koord-scheduler", "containers": [container], "priority": priority}, "status": {"phase": "Pending"},
        }
        for at in range(pods)
    ]  # fmt: skip
    large = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    objects += [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"schedulerName": "koord-scheduler", "containers": [large], "priority": order, "nodeName": node},
            "status": {"phase": "Running"},
        }
        for name, order, node in there
    ]  # fmt: skip
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "utf-8")
    out, err = io.StringIO(), io.StringIO()
    code = main(("explain", "gang", "train", "-f", str(file), *more), Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("cpus", "pods", "group", "said"),
    [
        ("4", 4, True, "all its pods find a node now"),
        ("3", 4, True, "default/w3 finds no node: 0/1 nodes are available: 1 Insufficient cpu."),
        ("4", 3, True, "gang default/train does not have its 4 pods yet."),
        ("4", 4, False, "there is no PodGroup default/train."),
    ],
)
def test_how_a_gang_stands(tmp_path: Path, cpus: str, pods: int, group: bool, said: str) -> None:
    code, out, err = explained(tmp_path, cpus, pods, group=group)
    assert (code, err) == (0, "")
    assert said in out


def test_for_programs(tmp_path: Path) -> None:
    found = json.loads(explained(tmp_path, "3", 4, "-o", "json")[1])
    assert (found["minimum"], found["placed"], found["bound"]) == (4, 3, 0)
    assert [one["node"] for one in found["members"]] == ["n1", "n1", "n1", None]


def preempting(folder: Path) -> tuple[str, ...]:
    own = {
        "apiVersion": "koordpolicy.io/v1alpha1", "kind": "GangScheduling", "metadata": {"name": "own"},
        "spec": {"parameters": {"enablePreemption": {"value": True}}},
    }  # fmt: skip
    (folder / "own").mkdir()
    (folder / "own" / "gangs.yaml").write_text(json.dumps(own), "utf-8")
    return ("-p", str(folder / "own"))


def test_who_would_have_to_go(tmp_path: Path) -> None:
    low = [("low", 0, "n1"), ("high", 9999, "n1")]
    code, out, err = explained(tmp_path, "6", 4, *preempting(tmp_path), there=low[:1], priority=100)
    assert (code, err) == (0, "")
    assert "all its pods find a node now" in out, "there is room beside it"
    for there, said in (
        (low[:1], "room would be made for all of them: default/low on n1 would have to go."),
        (low[1:], "nobody would go for it: nobody may go for it."),
    ):
        out = explained(tmp_path, "5", 4, "-p", str(tmp_path / "own"), there=there, priority=100)[1]
        assert said in out
    found = json.loads(
        explained(tmp_path, "5", 4, "-p", str(tmp_path / "own"), "-o", "json", there=low[:1], priority=100)[1]
    )
    assert found["room"]["victims"] == [{"pod": "default/low", "on": "n1"}]
    assert len(found["room"]["nodes"]) == 3
    printed = io.StringIO()
    pod = ("explain", "pod", "w0", "-f", str(tmp_path / "cluster.json"), "-p", str(tmp_path / "own"))
    assert main(pod, Terminal(printed, io.StringIO())) == 0
    assert "n1" in printed.getvalue(), "alone it finds a node"


def _racked(folder: Path) -> str:
    """A file with a PodGroup of Kubernetes' own of four pods on two racks that have room for three and two."""
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "train", "namespace": "default"},
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": 4}},
                "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
            },
        }
    ]  # fmt: skip
    for name, rack, cpus in (("n1", "r1", "3"), ("n2", "r2", "2"), ("n3", "r2", "500m")):
        room = {"cpu": cpus, "memory": "8Gi", "pods": "10"}
        labels = {"example.com/rack": rack}
        objects.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"capacity": room, "allocatable": room}}
        )  # fmt: skip
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    objects += [
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"w{at}", "namespace": "default", "uid": f"u{at}"},
            "spec": {"schedulerName": "koord-scheduler", "containers": [container], "schedulingGroup": {"podGroupName": "train"}},
            "status": {"phase": "Pending"},
        }
        for at in range(4)
    ]  # fmt: skip
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "utf-8")
    return str(file)


def test_which_domains_were_tried(tmp_path: Path) -> None:
    file = _racked(tmp_path)
    out = io.StringIO()
    assert main(["explain", "gang", "train", "-f", file], Terminal(out, io.StringIO())) == 0
    text = " ".join(out.getvalue().split())
    assert "1 of 4 pods find no node in one domain of example.com/rack: r1 takes 3, r2 takes 2" in text
    assert "r1 (1 node) takes 3: no room for more beside them" in text
    assert "r2 (2 nodes) takes 2: 1 Insufficient cpu" in text
    out = io.StringIO()
    assert main(["explain", "gang", "train", "-f", file, "-o", "json"], Terminal(out, io.StringIO())) == 0
    found = json.loads(out.getvalue())
    assert found["domains"][1] == {"name": "r2", "nodes": 2, "takes": 2, "refused": {"Insufficient cpu": 1}}
    assert not any(one["node"] for one in found["members"])


def test_some_of_many_pods_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    out = explained(tmp_path, "64", 57)[1]
    assert out.count("default/w") == 50
    assert "and 7 pods more, of which 7 find no node" in out, "the node takes 10"
    assert len(json.loads(explained(tmp_path, "64", 57, "-o", "json")[1])["members"]) == 57
