"""The mechanisms that policies name: one ordered table from name to implementation.

Each is a thin fit between a profile's parameters and an algorithm of `koordpolicy.mechanism`. To add
one: its name and parameters in `language/kinds/mechanisms.py`, its implementation in a module beside this.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.scheduler.events import Event
from koordpolicy.scheduler.mechanisms.base import NODES_COME_AND_CHANGE, Mechanism
from koordpolicy.scheduler.mechanisms.images import image_locality, images_wanted
from koordpolicy.scheduler.mechanisms.interpod import (
    interpod_filter,
    interpod_rank,
    required_wanted,
    wishes_wanted,
)
from koordpolicy.scheduler.mechanisms.packing import (
    amplified_cpu,
    amplified_cpu_one,
    fit_plus_score,
    fit_plus_score_one,
    scarce_avoidance,
)
from koordpolicy.scheduler.mechanisms.placement import (
    avoided_taints,
    node_name,
    node_unschedulable,
    preferred_affinity,
    required_affinity,
    taint_toleration,
)
from koordpolicy.scheduler.mechanisms.ports import node_ports, ports_wanted
from koordpolicy.scheduler.mechanisms.resources import (
    balanced_score,
    balanced_score_one,
    fit_score,
    fit_score_one,
    resources_fit,
    resources_fit_one,
    room_wanted,
)
from koordpolicy.scheduler.mechanisms.spread import hard_wanted, soft_wanted, spread_filter, spread_rank
from koordpolicy.scheduler.mechanisms.volumes import (
    claims_wanted,
    node_volume_limits,
    volume_filter,
    volume_plan,
    volume_restrictions,
    volume_zone,
    volumes_missing,
    volumes_wanted,
)
from koordpolicy.scheduler.nodes import KINDS

_PLACEMENT: Final = frozenset({"spec"})
"""Stands for what a pod's spec says of nodes, which has no facts of its own."""

_WHERE: Final = frozenset({"labels", "name"})
"""What labels say of where a node is."""

_FIT_FACTS: Final = frozenset({"resources.allocatable", "resources.requested", "requested.pods"})

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "NodeUnschedulable": Mechanism(
            filter=node_unschedulable, node_facts=frozenset({"unschedulable"}), pod_facts=_PLACEMENT
        ),
        "NodeName": Mechanism(
            filter=node_name, node_facts=frozenset({"name"}), pod_facts=frozenset({"nodeName"})
        ),
        "TaintToleration": Mechanism(
            filter=taint_toleration,
            score=avoided_taints,
            node_facts=frozenset({"scheduler/taints"}),
            pod_facts=_PLACEMENT,
        ),
        "NodeAffinity": Mechanism(
            filter=required_affinity,
            score=preferred_affinity,
            node_facts=frozenset({"labels", "name"}),
            pod_facts=_PLACEMENT,
        ),
        "NodeResourcesFit": Mechanism(
            filter=resources_fit,
            score=fit_score,
            node_facts=_FIT_FACTS | {"resources.nonzeroRequested"},
            pod_facts=frozenset({"resources.request", "resources.nonzeroRequest"}),
            helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
            room=room_wanted,
            filter_one=resources_fit_one,
            score_one=fit_score_one,
        ),
        "NodeResourcesBalancedAllocation": Mechanism(
            score=balanced_score,
            score_one=balanced_score_one,
            node_facts=_FIT_FACTS,
            pod_facts=frozenset({"resources.request"}),
        ),
        "NodePorts": Mechanism(
            filter=node_ports,
            helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
            local=False,
            stamp=ports_wanted,
        ),
        "VolumeRestrictions": Mechanism(
            filter=volume_restrictions,
            helped_by=frozenset({Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES_CHANGED}),
            local=False,
            stamp=volumes_wanted,
        ),
        "NodeVolumeLimits": Mechanism(
            filter=node_volume_limits,
            helped_by=frozenset({Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES_CHANGED}),
            local=False,
            stamp=claims_wanted,
        ),
        "VolumeBinding": Mechanism(
            filter=volume_filter,
            node_facts=_WHERE,
            helped_by=NODES_COME_AND_CHANGE | {Event.VOLUMES_CHANGED},
            local=False,
            stamp=claims_wanted,
            reserve=volume_plan,
            settles=volumes_missing,
        ),
        "VolumeZone": Mechanism(
            filter=volume_zone,
            node_facts=_WHERE,
            helped_by=NODES_COME_AND_CHANGE | {Event.VOLUMES_CHANGED},
            local=False,
            stamp=claims_wanted,
        ),
        "PodTopologySpread": Mechanism(
            filter=spread_filter,
            rank=spread_rank,
            node_facts=_WHERE | {"scheduler/taints"},
            helped_by=NODES_COME_AND_CHANGE
            | {Event.NODE_GONE, Event.POD_GONE, Event.POD_PLACED, Event.POD_CHANGED},
            local=False,
            stamp=hard_wanted,
            rank_stamp=soft_wanted,
        ),
        "InterPodAffinity": Mechanism(
            filter=interpod_filter,
            rank=interpod_rank,
            node_facts=_WHERE,
            helped_by=NODES_COME_AND_CHANGE
            | {Event.POD_GONE, Event.POD_PLACED, Event.POD_CHANGED, Event.NAMESPACE_CHANGED},
            local=False,
            stamp=required_wanted,
            rank_stamp=wishes_wanted,
        ),
        "ImageLocality": Mechanism(score=image_locality, local=False, stamp=images_wanted),
        "NodeResourcesFitPlus": Mechanism(
            score=fit_plus_score,
            score_one=fit_plus_score_one,
            node_facts=_FIT_FACTS | {"resources.nonzeroRequested"},
            pod_facts=frozenset({"resources.request", "containers"}),
        ),
        "ScarceResourceAvoidance": Mechanism(
            score=scarce_avoidance,
            node_facts=frozenset({KINDS}),
            pod_facts=frozenset({"resources.request"}),
        ),
        "AmplifiedCPU": Mechanism(
            filter=amplified_cpu,
            filter_one=amplified_cpu_one,
            node_facts=_FIT_FACTS | {"amplification.cpu", "ownedCPU"},
            pod_facts=frozenset({"resources.request"}),
            helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
        ),
    }
)
"""All mechanisms, in the order of the manual."""
