"""Small clusters in few words, and a scheduler on a clock that the test holds."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.graph import RuleGraph
from koordpolicy.model.metric import AggregatedUsage, NodeMetric, PodMetric
from koordpolicy.model.node import Node, Taint
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.protocol import USAGE_THRESHOLDS
from koordpolicy.model.reading import read_amounts
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import PodDecision, Scheduler
from tests.vectors.policies import document, graph

Given = Mapping[str, Any]

PROFILE = "koord-scheduler"
START = 1_700_000_000 * NANOSECONDS


def policies(*specs: Given) -> RuleGraph:
    """The built-in pack, and documents above it that say these things of the profile."""
    return graph(
        *(
            document("SchedulingProfile", f"own-{number}", {"schedulerName": PROFILE, **spec})
            for number, spec in enumerate(specs)
        )
    )


def node(name: str, given: Given) -> Node:
    """A node: `allocatable`, `labels`, `taints` as `key=value:Effect`, `unschedulable`, `thresholds`."""
    amounts = read_amounts({"pods": "110", **given.get("allocatable", {"cpu": "10", "memory": "10Gi"})})
    taints = []
    for text in given.get("taints", ()):
        key, _, effect = text.partition(":")
        taints.append(Taint(key.partition("=")[0], effect, key.partition("=")[2]))
    annotations = {USAGE_THRESHOLDS: json.dumps(given["thresholds"])} if "thresholds" in given else {}
    return Node(
        name,
        labels=given.get("labels", {}),
        annotations={**annotations, **given.get("annotations", {})},
        capacity=amounts,
        allocatable=amounts,
        taints=tuple(taints),
        unschedulable=given.get("unschedulable", False),
    )


def metric(name: str, given: Given, now: int) -> NodeMetric:
    """A report: `usage`, `age` in seconds, `pods` with `usage` and `class`, `p95` over five minutes."""
    windows = (
        (AggregatedUsage(300 * NANOSECONDS, {"p95": read_amounts(given["p95"])}),) if "p95" in given else ()
    )
    return NodeMetric(
        name,
        updated_at=now - given.get("age", 0) * NANOSECONDS,
        node_usage=read_amounts(given["usage"]),
        aggregated=windows,
        pods=tuple(
            PodMetric("default", one, read_amounts(said["usage"]), said.get("class", "koord-prod"))
            for one, said in given.get("pods", {}).items()
        ),
    )


def pod(name: str, given: Given | None = None) -> Pod:
    """A pod: `request`, `limit`, `priority`, `labels`, `node`, and anything else as its spec has it."""
    said = {"request": {"cpu": "1", "memory": "1Gi"}, **(given or {})}
    resources = {"requests": said.pop("request"), "limits": said.pop("limit", {})}
    metadata = {
        "name": name,
        "namespace": said.pop("namespace", "default"),
        "uid": f"uid-{name}",
        "labels": said.pop("labels", {}),
        "annotations": said.pop("annotations", {}),
        "ownerReferences": said.pop("owners", []),
    }
    status = {"phase": said.pop("phase", "Pending"), "conditions": said.pop("conditions", [])}
    spec = {
        "schedulerName": PROFILE,
        "priority": said.pop("priority", 9500),
        "nodeName": said.pop("node", ""),
        "containers": [{"name": "main", "resources": resources}],
        **said,
    }
    return read_pod({"metadata": metadata, "spec": spec, "status": status})


class World:
    """A scheduler and its clock. `now` may be moved."""

    def __init__(self, compiled: RuleGraph | None = None, **options: Any) -> None:
        self.now = START
        self.scheduler = Scheduler(compiled or policies(), lambda: self.now, **options)

    def build(self, given: Given) -> None:
        """Nodes by name with their `metric`, pods that are on them."""
        for name, written in given.get("nodes", {}).items():
            said = written or {}
            self.scheduler.set_node(node(name, said))
            if "metric" in said:
                self.scheduler.set_metric(metric(name, said["metric"], self.now))
            for one, asked in said.get("pods", {}).items():
                self.scheduler.set_pod(pod(one, {**(asked or {}), "node": name, "phase": "Running"}))

    def submit(self, name: str, given: Given | None = None) -> None:
        """A pod comes."""
        self.scheduler.set_pod(pod(name, given))

    def place(self, name: str, given: Given | None = None) -> PodDecision:
        """A pod comes, and is decided on."""
        self.submit(name, given)
        decision = self.scheduler.schedule_one()
        assert decision is not None
        assert decision.pod == ("default", name)
        return decision

    def diagnose(self) -> list[PodDecision]:
        """All that is found out about pods that wait is found out; the decisions of which it is told."""
        found = self.scheduler.diagnosis.some(lambda: False)
        assert not found.more
        return [decision for decision, _ in found.told]

    def names(self) -> list[str]:
        """The pods in the order in which they are decided on, until none is left."""
        found = []
        while (decision := self.scheduler.schedule_one()) is not None:
            found.append(decision.pod[1])
        return found

    def pass_time(self, seconds: float) -> None:
        self.now += int(seconds * NANOSECONDS)
