"""What a component works with, on a cluster in memory: no server, no election, policies that a test gives."""

from typing import Any, cast

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.runtime.apiserver import ServerSight
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.leadership import Leadership
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import Process
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.runtime.requests import RequestCounts


def component_of(name: str, cluster: MemoryCluster, policies: Any) -> RunningComponent:
    """A component of that name, which leads; `policies` stand for live ones."""
    metrics = Metrics(name)
    recorder = Recorder(
        cluster, component=f"koordpolicy-{name}", instance="m", now_ns=now_ns, backoff=Backoff(lambda: 0.5)
    )
    return RunningComponent(
        Process(name, "m", metrics),
        cluster,
        cast(Any, None),
        policies,
        None,
        Leadership(cluster, "default", "m", metrics, elect=False),
        recorder,
        DecisionCounts(metrics),
        None,
        UnreadableObjects(lambda *_found: None),
        Troubles(metrics, policies, recorder, leads=lambda: True, now=now_ns),
        ServerSight(RequestCounts(metrics), monotonic),
    )
