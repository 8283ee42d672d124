"""Rollouts in a process of a cluster: the gate with everything around it."""

from collections.abc import Callable

from koordpolicy.kube.events import Recorder
from koordpolicy.kube.port import Cluster
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import InstanceState
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.reporting import Reporter, Shown
from koordpolicy.runtime.rollout.cluster_store import ClusterStore
from koordpolicy.runtime.rollout.gate import RolloutGate, Surroundings
from koordpolicy.runtime.rollout.state import SYSTEM, Entry, Phase, State

_BAD = frozenset({"Aborted"})


def cluster_gate(
    cluster: Cluster,
    metrics: Metrics,
    instance: str,
    *,
    node: str,
    leads: Callable[[], bool],
    reporter: Callable[[], Reporter | None],
    recorder: Callable[[], Recorder | None],
) -> RolloutGate:
    """The gate of a component. `leads` says whether it is the one that advances rollouts.

    The reporter shows what becomes of the candidate, the recorder keeps the audit trail; both are asked for when
    they are needed, since they are made later.
    """

    def notify(state: State, entry: Entry) -> None:
        to = recorder()
        if to is None:
            return
        about = {
            "apiVersion": POLICY_REVISIONS.api_version,
            "kind": POLICY_REVISIONS.kind,
            "metadata": {"name": state.subject.name},
        }
        by = "" if entry.by == SYSTEM or entry.by in entry.message else f" ({entry.by})"
        to.record(
            about,
            f"Rollout{entry.event}",
            entry.message + by,
            type="Warning" if entry.event in _BAD else "Normal",
            action="Rollout",
        )

    def show(state: State, ahead: bool) -> None:
        to = reporter()
        if to is not None:
            paused = "paused" if state.phase is Phase.PAUSED else "in"
            message = f"{paused} step `{state.step}`" + (f": {state.message}" if state.message else "")
            to.show(Shown(InstanceState.CANARY if ahead else InstanceState.SHADOW, message))

    store = ClusterStore(cluster, instance, monotonic=monotonic)
    return RolloutGate(store, metrics, Surroundings(now_ns, leads, notify, show, node))
