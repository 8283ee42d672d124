"""`koordpolicy explain node NAME`: on manifests, as a user runs it."""

import io
import json
from pathlib import Path
from typing import Any

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.model.protocol import DEVICE_ALLOCATED, QOS_CLASS
from tests.unit.scheduler.test_cpus import topology_object
from tests.unit.scheduler.test_devices import device_object

RATIO = "koordinator.sh/gpu-memory-ratio"


def explained(folder: Path, *more: str) -> tuple[int, str, str]:
    """What is said of a node with two cards and eight CPUs: one card is shared by two pods, one pod has CPUs of its own."""
    room = {"cpu": "16", "memory": "8Gi", "pods": "10", RATIO: "200"}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}, "status": {"capacity": room, "allocatable": room}},
        {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", **device_object(2)},
        {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", **topology_object("n0", zones=2, cores=2)},
    ]  # fmt: skip
    for name, part, status in (("a", "40", ""), ("b", "25", '{"cpuset":"0-1"}')):
        request, labels = {RATIO: part}, dict[str, str]()
        share = {"minor": 1, "id": "gpu-1", "resources": {RATIO: part}}
        annotations = {DEVICE_ALLOCATED: json.dumps({"gpu": [share]})}
        if status:
            annotations["scheduling.koordinator.sh/resource-status"] = status
            request["cpu"], labels[QOS_CLASS] = "2", "LSR"
        objects.append(
            {
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": name, "namespace": "default", "uid": name, "annotations": annotations, "labels": labels,
                },
                "spec": {
                    "schedulerName": "koord-scheduler", "nodeName": "n0", "priority": 9000,
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": request}}],
                },
                "status": {"phase": "Running"},
            }
        )  # fmt: skip
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "utf-8")
    out, err = io.StringIO(), io.StringIO()
    code = main(("explain", "node", "n0", "-f", str(file), *more), Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def test_each_card_is_shown_with_its_owners(tmp_path: Path) -> None:
    code, said, err = explained(tmp_path)
    assert (code, err) == (0, "")
    assert [line.rstrip() for line in said.splitlines()] == [
        "Node n0                                                      1 of 2 devices idle",
        "  gpu 0   ····················   0 %",
        "  gpu 1   █████████████·······  65 %  default/a 40 %, default/b 25 %",
        "  zone 0  CPUs 0-3: 2 are nobody's own; default/b 0-1",
        "  zone 1  CPUs 4-7: 4 are nobody's own",
    ]
    code, said, err = explained(tmp_path, "--output", "json")
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert found["devices"][1] == {
        "type": "gpu",
        "minor": 1,
        "healthy": True,
        "usedPercent": 65,
        "owners": [{"pod": "default/a", "percent": 40}, {"pod": "default/b", "percent": 25}],
    }
    assert [zone["free"] for zone in found["zones"]] == [2, 4]
