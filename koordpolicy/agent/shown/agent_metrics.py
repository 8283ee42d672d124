"""All metrics that are read from the agent whenever they are asked for, and what it takes the time of."""

from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.shown.node import NODE_ROWS
from koordpolicy.agent.shown.pods import POD_ROWS
from koordpolicy.agent.shown.rows import Rows, ShownRows
from koordpolicy.kube.kubelet import RequestTold
from koordpolicy.linux.writes.audit import WriteAudit
from koordpolicy.linux.writes.write import FileOutcome
from koordpolicy.runtime.metrics import Metrics

_MILLISECOND: Final = 1_000_000
"""Nanoseconds."""

ALL_ROWS: Final[Mapping[str, Rows]] = {**NODE_ROWS, **POD_ROWS}


def time_request(metrics: Metrics) -> RequestTold:
    """Takes the time of requests to the kubelet."""

    def told(path: str, status: int, seconds: float) -> None:
        metrics.observe(
            "koordlet_kubelet_request_duration_seconds", seconds, verb="get", path=path, code=str(status)
        )

    return told


def time_write(metrics: Metrics) -> Callable[[WriteAudit], None]:
    """Takes the time of writes of kernel files."""

    def told(write: WriteAudit) -> None:
        if write.took:
            status = "success" if write.outcome is FileOutcome.WRITTEN else "failed"
            metrics.observe(
                "koordlet_resource_update_duration_milliseconds",
                write.took / _MILLISECOND,
                type=str(write.write.writer),
                status=status,
            )

    return told


def show_metrics(agent: NodeAgent) -> None:
    """Show them among the process' own. Once an agent."""
    for name, rows in ALL_ROWS.items():
        agent.component.process.metrics.show_elsewhere(name, ShownRows(agent, rows))
