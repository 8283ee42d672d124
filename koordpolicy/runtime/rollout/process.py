"""Rollouts in a process of a cluster: the gate with everything around it."""

from collections.abc import Callable

from koordpolicy.kube.events import Recorder
from koordpolicy.kube.port import Cluster
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.reports.revision_objects import regarding
from koordpolicy.runtime.rollout.cluster_store import ClusterStore
from koordpolicy.runtime.rollout.gate import GateContext, RolloutGate
from koordpolicy.runtime.rollout.state import SYSTEM, Entry, RolloutProgress

_BAD = frozenset({"Aborted"})


def cluster_gate(
    cluster: Cluster,
    metrics: Metrics,
    recorder: Recorder,
    instance: str,
    *,
    node: str,
    leads: Callable[[], bool],
    stands_in: Callable[[], bool],
    publishes: bool = True,
) -> RolloutGate:
    """The gate of a component. `leads` says whether it is the one that advances rollouts; it keeps the audit trail.

    `stands_in` says the same of one that does so only as long as nobody is there who leads. For `publishes` see `ClusterStore`.
    """

    def notify(state: RolloutProgress, entry: Entry) -> None:
        by = "" if entry.by == SYSTEM or entry.by in entry.message else f" ({entry.by})"
        recorder.record(
            regarding(state.subject.name),
            f"Rollout{entry.event}",
            entry.message + by,
            type="Warning" if entry.event in _BAD else "Normal",
            action="Rollout",
        )

    store = ClusterStore(cluster, instance, monotonic=monotonic, publishes=publishes)
    return RolloutGate(store, metrics, GateContext(now_ns, leads, notify, node, stands_in=stands_in))
