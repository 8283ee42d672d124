"""Who answers which kind: one table, a module a domain.

A runner takes a vector's input and gives the answer in the shape of `expect`. Where the answer is
policy it goes through the compiled built-in pack. To add a kind, add it to `RUNNERS` of its domain's
module; to add a domain, add its module here.
"""

from collections.abc import Mapping

from tests.vectors.runners import (
    descheduler,
    descheduler_load,
    descheduler_migration,
    descheduler_nodes,
    kernel_files,
    manager,
    manager_nodes,
    manager_quotas,
    manager_strategies,
    node_agent,
    node_agent_bursts,
    node_agent_evictions,
    node_agent_isolation,
    node_agent_peaks,
    runtime_proxy,
    scheduler_core,
    scheduler_devices,
    scheduler_gangs,
    scheduler_neighbours,
    scheduler_packing,
    scheduler_preemption,
    scheduler_quotas,
    scheduler_reservations,
    scheduler_topology,
    scheduler_zones,
)
from tests.vectors.runners.runner import Runner

_DOMAINS: tuple[tuple[str, Mapping[str, Runner]], ...] = (
    ("descheduler", descheduler.RUNNERS),
    ("descheduler", descheduler_load.RUNNERS),
    ("descheduler", descheduler_migration.RUNNERS),
    ("descheduler", descheduler_nodes.RUNNERS),
    ("node-agent", kernel_files.RUNNERS),
    ("manager", manager.RUNNERS),
    ("manager", manager_nodes.RUNNERS),
    ("manager", manager_strategies.RUNNERS),
    ("manager", manager_quotas.RUNNERS),
    ("node-agent", node_agent.RUNNERS),
    ("node-agent", node_agent_bursts.RUNNERS),
    ("node-agent", node_agent_evictions.RUNNERS),
    ("node-agent", node_agent_isolation.RUNNERS),
    ("node-agent", node_agent_peaks.RUNNERS),
    ("node-agent", runtime_proxy.RUNNERS),
    ("scheduler-core", scheduler_core.RUNNERS),
    ("scheduler-core", scheduler_neighbours.RUNNERS),
    ("scheduler-core", scheduler_packing.RUNNERS),
    ("scheduler-core", scheduler_preemption.RUNNERS),
    ("scheduler-jobs", scheduler_topology.RUNNERS),
    ("scheduler-jobs", scheduler_gangs.RUNNERS),
    ("scheduler-jobs", scheduler_quotas.RUNNERS),
    ("scheduler-resources", scheduler_reservations.RUNNERS),
    ("scheduler-resources", scheduler_zones.RUNNERS),
    ("scheduler-resources", scheduler_devices.RUNNERS),
)

RUNNERS: Mapping[tuple[str, str], Runner] = {
    (domain, kind): runner for domain, runners in _DOMAINS for kind, runner in runners.items()
}
"""The runner of each (domain, kind). A domain is named like its file of chosen vectors."""

SHAPES: Mapping[str, Mapping[str, str]] = {
    "batch_resource": {"manager": "node", "node-agent": "spec"},
    "cpu_normalization": {"manager": "cpu_basic_info", "node-agent": "limit"},
    "quota_admission": {"manager": "child_request", "scheduler-jobs": "quotas"},
}
"""Kinds that two domains share: domain → an input key that only its vectors have."""
