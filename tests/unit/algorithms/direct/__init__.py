"""Vectors asked of the algorithms directly, with the policy's numbers written out as arguments."""

from collections.abc import Mapping

from tests.unit.algorithms.direct import agent, load, manager, scheduler
from tests.vectors.runners import RUNNERS as COMPILED
from tests.vectors.runners.runner import Runner

_WITHOUT_POLICY = (
    ("scheduler-core", "pod_request"),
    ("node-agent", "shares_weight"),
    ("node-agent", "cpu_files"),
)

RUNNERS: Mapping[tuple[str, str], Runner] = {
    **scheduler.RUNNERS,
    **load.RUNNERS,
    **agent.RUNNERS,
    **manager.RUNNERS,
    **{key: COMPILED[key] for key in _WITHOUT_POLICY},
}
