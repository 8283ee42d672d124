"""Volumes: disks that are in use, attach limits, claims that come only to some nodes, zones.

Claims that wait for their first pod are planned with the pod's node (`claim`), which counts at once, and written before
the pod is bound (`prebind`).
"""

from typing import Final

from koordpolicy.cluster.events import Event
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, PLACE, Plugin
from koordpolicy.scheduler.plugins.volumes.claim import give_back, has_claims, take, take_again
from koordpolicy.scheduler.plugins.volumes.filters import (
    claims_advice,
    claims_wanted,
    node_volume_limits,
    volume_filter,
    volume_restrictions,
    volume_zone,
    volumes_missing,
    volumes_wanted,
)
from koordpolicy.scheduler.plugins.volumes.prebind import bind_volumes

RESTRICTIONS: Final = Plugin(
    filter=volume_restrictions,
    helped_by=frozenset({Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES_CHANGED}),
    row_only=False,
    cache_key=volumes_wanted,
    ordinary_with=0,
    of_kubernetes=True,
)

LIMITS: Final = Plugin(
    filter=node_volume_limits,
    helped_by=frozenset({Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES_CHANGED}),
    row_only=False,
    cache_key=claims_wanted,
    ordinary_with=0,
    of_kubernetes=True,
)

BINDING: Final = Plugin(
    filter=volume_filter,
    node_facts=PLACE,
    helped_by=NODES_COME_AND_CHANGE | {Event.VOLUMES_CHANGED},
    row_only=False,
    cache_key=claims_wanted,
    ordinary_with=0,
    unresolvable=volumes_missing,
    state=lambda host: host,
    concerns=has_claims,
    reserve=take,
    undo=give_back,
    redo=take_again,
    prebind=bind_volumes,
    advice=claims_advice,
    of_kubernetes=True,
)

ZONE: Final = Plugin(
    filter=volume_zone,
    node_facts=PLACE,
    helped_by=NODES_COME_AND_CHANGE | {Event.VOLUMES_CHANGED},
    row_only=False,
    cache_key=claims_wanted,
    ordinary_with=0,
    of_kubernetes=True,
)
