"""The network of the cluster: gangs within one place of it (`plan`, which nobody asks for yet), pods near others of their group."""

from typing import Final

from koordpolicy.scheduler.plugins.base import PLACE, Plugin
from koordpolicy.scheduler.plugins.topology.near import near_others, nearness_rank

NETWORK_TOPOLOGY: Final = Plugin(
    rank=nearness_rank,
    node_facts=PLACE,
    row_only=False,
    rank_key=near_others,
)
