"""A cluster at rest, from a snapshot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.console.frames import COLUMNS, NOBODY, Frame, Frames, leading, share
from koordpolicy.console.worlds.endings import ending_of
from koordpolicy.console.worlds.world import CannotAnswer, Names, NodeShown, PodBackground, PodSpan
from koordpolicy.descheduler.migration.job import MigrationJob, read_job
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NODE_METRICS, POD_MIGRATION_JOBS
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.agent_runs import AgentRuns, read_agent_runs
from koordpolicy.model.metric import NodeMetric, read_node_metric
from koordpolicy.model.node import Node, read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.policy_revision import InstanceState
from koordpolicy.model.protocol import CPU, MEMORY, PRIORITY_CLASS, QOS_CLASS
from koordpolicy.model.unreadable import Unreadable, readable


@dataclass(frozen=True, slots=True)
class Seen:
    """What a snapshot shows: nodes, pods, the names that its frame has codes of, and how pods end that end."""

    snapshot: Snapshot
    nodes: tuple[NodeShown, ...]
    spans: tuple[PodSpan, ...]
    names: Names
    frame: Frame
    endings: Mapping[str, str]


class PicturedWorld:
    """One frame of a snapshot."""

    kind = "picture"

    def __init__(self, graph: RuleGraph, snapshot: Snapshot, title: str) -> None:
        self.graph = graph
        self.title = title
        self.frames = Frames()
        self._nodes: tuple[NodeShown, ...] = ()
        self._spans: tuple[PodSpan, ...] = ()
        self._names = Names()
        self._snapshot = snapshot
        self.trouble = ""
        self.behind = ""
        """Why the policies that answer are not those of the cluster as it is now."""
        self.show(self.read(snapshot))

    def nodes(self) -> tuple[NodeShown, ...]:
        """See `World`."""
        return self._nodes

    def names(self) -> Names:
        """See `World`."""
        return self._names

    def clock(self) -> dict[str, Any]:
        """See `World`."""
        return {
            "steers": False,
            "start": self.frames.kept[0].time / 1e9 if self.frames.kept else 0,
            "failure": self.trouble or (f"{self.behind}; those before it answer" if self.behind else ""),
            "over": self.kind == "picture",
        }

    def steer(self, wanted: Mapping[str, Any]) -> None:
        """See `World`."""
        raise CannotAnswer("time goes by itself here: only a simulation can be told to wait")

    def spans(self) -> tuple[PodSpan, ...]:
        """See `World`."""
        return self._spans

    async def picture(self) -> Snapshot:
        """See `World`."""
        return self._snapshot

    def submitted(self, pod: str) -> Object | None:
        """See `World`: a cluster does not keep what its webhooks changed."""
        return None

    async def beside(self, pod: str, picture: Snapshot) -> PodBackground:
        """See `World`."""
        return PodBackground(unknown="a picture of a cluster holds no Events: `--live` reads them")

    # --- from a snapshot to a frame ---------------------------------------------------------------

    def show(self, seen: Seen) -> None:
        """Add what was read of a snapshot."""
        if self._nodes and [one.name for one in seen.nodes] != [one.name for one in self._nodes]:
            self.frames.begin()
        self._snapshot, self._nodes, self._spans, self._names = (
            seen.snapshot,
            seen.nodes,
            seen.spans,
            seen.names,
        )
        self.frames.add(seen.frame)

    def read(self, snapshot: Snapshot) -> Seen:
        """What a snapshot shows; nothing is changed by it, so that it may be read in a thread."""
        nodes = [one for one in (readable(read_node, obj) for obj in snapshot.nodes) if isinstance(one, Node)]
        shown = tuple(
            NodeShown(one.name, one.capacity.get(CPU, 0), one.capacity.get(MEMORY, 0), dict(one.labels))
            for one in nodes
        )
        metrics = {
            one.name: one
            for one in (readable(read_node_metric, obj) for obj in snapshot.of(NODE_METRICS))
            if not isinstance(one, Unreadable)
        }
        runs = {
            obj["metadata"]["name"]: found
            for obj in snapshot.of(NODE_METRICS)
            if isinstance(found := readable(read_agent_runs, obj), AgentRuns)
        }
        spans, endings = self._read_pods(snapshot, metrics)
        there = frozenset(node.name for node in nodes)
        on = [span for span in spans if span.node in there]
        # Codes of earlier frames keep their meaning.
        decides = [_decides(runs.get(node.name)) for node in nodes]
        names = Names(
            tuple(dict.fromkeys((*self._names.classes, *(span.qos for span in on)))),
            tuple(dict.fromkeys((*self._names.bands, *(span.band for span in on)))),
            tuple(dict.fromkeys((*self._names.revisions, *decides))),
        )
        frame = self._frame(snapshot.taken, nodes, metrics, on, names, decides, len(spans))
        return Seen(snapshot, shown, spans, names, frame, endings)

    def _read_pods(
        self, snapshot: Snapshot, metrics: Mapping[str, NodeMetric]
    ) -> tuple[tuple[PodSpan, ...], dict[str, str]]:
        used = {
            f"{pod.namespace}/{pod.name}": pod.usage.get(CPU, 0)
            for one in metrics.values()
            for pod in one.pods
        }
        cpus = self._cpu_names()
        spans, endings = [], {}
        moved = _moved(snapshot)
        for obj in snapshot.pods:
            pod = readable(read_pod, obj)
            if not isinstance(pod, Pod):
                continue
            if found_ending := ending_of(pod, moved):
                endings["/".join(pod.key)] = found_ending
            if pod.terminal:
                continue
            found = self.graph.catalogue.resolve(
                pod.labels.get(QOS_CLASS), pod.labels.get(PRIORITY_CLASS), pod.priority, pod.kubernetes_qos
            )
            name = "/".join(pod.key)
            requests = effective_requests(pod)
            spans.append(
                PodSpan(
                    name,
                    pod.node_name,
                    _since(pod, snapshot.taken),
                    found.qos,
                    self.graph.catalogue.class_name(found.band),
                    used.get(name, 0),
                    sum(requests.get(one, 0) for one in cpus),
                )
            )
        return tuple(spans), endings

    def _cpu_names(self) -> tuple[str, ...]:
        bands = (band_resources(self.graph, band).get(CPU) for band in self.graph.classes.bands)
        return tuple(dict.fromkeys((CPU, *(one for one in bands if one))))

    def _frame(
        self,
        taken: int,
        nodes: list[Node],
        metrics: Mapping[str, NodeMetric],
        on: list[PodSpan],
        names: Names,
        decides: list[str],
        pods: int,
    ) -> Frame:
        count = len(nodes)
        place = {node.name: at for at, node in enumerate(nodes)}
        at = [place[span.node] for span in on]
        classes, bands = names.classes, names.bands
        codes = {name: min(code, NOBODY) for code, name in enumerate(names.revisions)}

        def every(amount: Callable[[Node, NodeMetric | None], int]) -> np.ndarray[Any, np.dtype[np.int64]]:
            return np.array([amount(node, metrics.get(node.name)) for node in nodes], np.int64)

        cpu = every(lambda node, _: node.capacity.get(CPU, 0))
        memory = every(lambda node, _: node.capacity.get(MEMORY, 0))
        used = every(lambda _, found: 0 if found is None else (found.node_usage or {}).get(CPU, 0))
        held = every(lambda _, found: 0 if found is None else (found.node_usage or {}).get(MEMORY, 0))
        lent = [name for name in self._cpu_names() if name != CPU]
        offered = every(lambda node, _: sum(node.allocatable.get(name, 0) for name in lent))
        weight = np.array([span.cpu for span in on], np.int64)
        best = (
            np.bincount(at, np.array([span.cpu if span.qos == "BE" else 0 for span in on]), count)
            if on
            else np.zeros(count)
        )
        requested = (
            np.bincount(at, np.array([span.requested for span in on]), count) if on else np.zeros(count)
        )
        columns: dict[str, Any] = {
            "used": share(used, cpu),
            "services": share(used - best, cpu),
            "bestEffort": share(best, cpu),
            "withheld": np.zeros(count, np.uint8),  # what was wished for, no object tells
            "memory": share(held, memory),
            "requested": share(requested, cpu),
            "offered": share(offered, cpu),
            "class": leading(at, [classes.index(span.qos) for span in on], weight + 1, count),
            "band": leading(at, [bands.index(span.band) for span in on], weight + 1, count),
            "revision": np.array([codes[one] for one in decides], np.uint8),
            "pods": np.minimum(np.bincount(at, minlength=count) if on else np.zeros(count), 255).astype(
                np.uint8
            ),
        }
        rows = np.stack([columns[name] for name in COLUMNS], axis=1).tobytes()
        whole = max(int(cpu.sum()), 1)

        def percent(part: Any) -> float:
            return round(100 * float(part.sum()) / whole, 2)

        return Frame(
            taken,
            rows,
            {
                "used": percent(used),
                "services": percent(used - best),
                "bestEffort": percent(best),
                "withheld": 0,
                "requested": percent(requested),
                "memory": round(100 * float(held.sum()) / max(int(memory.sum()), 1), 2),
                "running": len(on),
                "pending": pods - len(on),
            },
        )


def _since(pod: Pod, now: int) -> int:
    """Since when a pod is where it is, as far as it says; a clock that is ahead of ours counts as now."""
    said = pod.started_at if pod.node_name else pod.created_at
    return min(said or 0, now)


def _decides(runs: AgentRuns | None) -> str:
    """The revision by which an agent decides about its node: one that is rolled out there ahead of others, too."""
    if runs is None:
        return ""
    return runs.candidate if runs.candidate and runs.stage == InstanceState.CANARY else runs.revision


def _moved(snapshot: Snapshot) -> frozenset[str]:
    """The pods that migrations are about."""
    jobs = (readable(read_job, obj) for obj in snapshot.of(POD_MIGRATION_JOBS))
    return frozenset("/".join(job.pod) for job in jobs if isinstance(job, MigrationJob))
