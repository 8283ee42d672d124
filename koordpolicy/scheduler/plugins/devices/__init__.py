"""Devices: which nodes have what a pod asks for of them, and which ones it gets, as the kind DeviceSharing says.

What is taken counts at once in `cluster/device_cards.py`, where trials of preemption take part in it, and stands in the pod's
annotation before it is bound: after a restart it is taken again from there.
"""

from typing import Final

from koordpolicy.cluster.device_policy import DevicePolicy
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.state import DEVICES, ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Plugin
from koordpolicy.scheduler.plugins.devices.claim import (
    adopt,
    concerned,
    give_back,
    said_with_binding,
    take,
    take_again,
    write,
    writes,
)
from koordpolicy.scheduler.plugins.devices.filters import (
    devices_advice,
    devices_free,
    devices_score,
    devices_wanted,
)


def keep(state: ClusterState, graph: RuleGraph) -> None:
    """Have devices dealt out as a revision says."""
    state.cards.begin(DevicePolicy(graph))


DEVICE_SHARE: Final = Plugin(
    filter=devices_free,
    score=devices_score,
    node_facts=frozenset({"labels"}),
    pod_facts=frozenset({"resources.request"}),
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE, Event.DEVICES_CHANGED},
    row_only=False,
    cache_key=devices_wanted,
    ordinary_with=DEVICES,
    keeps=keep,
    state=lambda host: host,
    concerned=concerned,
    reserve=take,
    undo=give_back,
    redo=take_again,
    adopt=adopt,
    prebind=write,
    writes=writes,
    annotates=said_with_binding,
    advice=devices_advice,
)
