"""The network of the cluster: gangs within one place of it, single pods near others of their group."""

from typing import Final

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.state import PLANS
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, PLACE, Plugin
from koordpolicy.scheduler.plugins.topology.near import near_others, nearness_rank
from koordpolicy.scheduler.plugins.topology.pins import planned, planned_only

NETWORK_TOPOLOGY: Final = Plugin(
    filter=planned_only,
    rank=nearness_rank,
    node_facts=PLACE,
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE, Event.METRIC_CHANGED, Event.NETWORK_CHANGED},
    row_only=False,
    cache_key=planned,
    rank_key=near_others,
    ordinary_with=PLANS,
)
