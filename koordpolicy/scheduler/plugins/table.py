"""The plugins that policies name: one ordered table from name to implementation.

Each is a thin fit between a profile's parameters and an algorithm of `koordpolicy.algorithms`. To add
one: its name and parameters in `language/kinds/plugins.py`, its implementation in a module beside this.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import KINDS
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Plugin
from koordpolicy.scheduler.plugins.images import image_locality, images_wanted
from koordpolicy.scheduler.plugins.interpod import (
    interpod_filter,
    interpod_rank,
    required_wanted,
    wishes_wanted,
)
from koordpolicy.scheduler.plugins.packing import (
    amplified_cpu,
    amplified_cpu_one,
    fit_plus_score,
    fit_plus_score_one,
    scarce_avoidance,
)
from koordpolicy.scheduler.plugins.placement import (
    avoided_taints,
    node_name,
    node_unschedulable,
    preferred_affinity,
    required_affinity,
    taint_toleration,
)
from koordpolicy.scheduler.plugins.ports import node_ports, ports_wanted
from koordpolicy.scheduler.plugins.resources import (
    balanced_score,
    balanced_score_one,
    fit_score,
    fit_score_one,
    requests_of,
    resources_fit,
    resources_fit_one,
)
from koordpolicy.scheduler.plugins.spread import hard_wanted, soft_wanted, spread_filter, spread_rank
from koordpolicy.scheduler.plugins.volumes import (
    claims_wanted,
    node_volume_limits,
    volume_filter,
    volume_plan,
    volume_restrictions,
    volume_zone,
    volumes_missing,
    volumes_wanted,
)

_PLACEMENT: Final = frozenset({"spec"})
"""Stands for what a pod's spec says of nodes, which has no facts of its own."""

_WHERE: Final = frozenset({"labels", "name"})
"""What labels say of where a node is."""

_FIT_FACTS: Final = frozenset({"resources.allocatable", "resources.requested", "requested.pods"})

PLUGINS: Mapping[str, Plugin] = MappingProxyType(
    {
        "NodeUnschedulable": Plugin(
            filter=node_unschedulable, node_facts=frozenset({"unschedulable"}), pod_facts=_PLACEMENT
        ),
        "NodeName": Plugin(
            filter=node_name, node_facts=frozenset({"name"}), pod_facts=frozenset({"nodeName"})
        ),
        "TaintToleration": Plugin(
            filter=taint_toleration,
            score=avoided_taints,
            node_facts=frozenset({"scheduler/taints"}),
            pod_facts=_PLACEMENT,
        ),
        "NodeAffinity": Plugin(
            filter=required_affinity,
            score=preferred_affinity,
            node_facts=frozenset({"labels", "name"}),
            pod_facts=_PLACEMENT,
        ),
        "NodeResourcesFit": Plugin(
            filter=resources_fit,
            score=fit_score,
            node_facts=_FIT_FACTS | {"resources.nonzeroRequested"},
            pod_facts=frozenset({"resources.request", "resources.nonzeroRequest"}),
            helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
            requests=requests_of,
            filter_one=resources_fit_one,
            score_one=fit_score_one,
        ),
        "NodeResourcesBalancedAllocation": Plugin(
            score=balanced_score,
            score_one=balanced_score_one,
            node_facts=_FIT_FACTS,
            pod_facts=frozenset({"resources.request"}),
        ),
        "NodePorts": Plugin(
            filter=node_ports,
            helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
            row_only=False,
            cache_key=ports_wanted,
        ),
        "VolumeRestrictions": Plugin(
            filter=volume_restrictions,
            helped_by=frozenset({Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES_CHANGED}),
            row_only=False,
            cache_key=volumes_wanted,
        ),
        "NodeVolumeLimits": Plugin(
            filter=node_volume_limits,
            helped_by=frozenset({Event.NODE_ADDED, Event.POD_GONE, Event.VOLUMES_CHANGED}),
            row_only=False,
            cache_key=claims_wanted,
        ),
        "VolumeBinding": Plugin(
            filter=volume_filter,
            node_facts=_WHERE,
            helped_by=NODES_COME_AND_CHANGE | {Event.VOLUMES_CHANGED},
            row_only=False,
            cache_key=claims_wanted,
            reserve=volume_plan,
            gate=volumes_missing,
        ),
        "VolumeZone": Plugin(
            filter=volume_zone,
            node_facts=_WHERE,
            helped_by=NODES_COME_AND_CHANGE | {Event.VOLUMES_CHANGED},
            row_only=False,
            cache_key=claims_wanted,
        ),
        "PodTopologySpread": Plugin(
            filter=spread_filter,
            rank=spread_rank,
            node_facts=_WHERE | {"scheduler/taints"},
            helped_by=NODES_COME_AND_CHANGE
            | {Event.NODE_GONE, Event.POD_GONE, Event.POD_PLACED, Event.POD_CHANGED},
            row_only=False,
            cache_key=hard_wanted,
            rank_key=soft_wanted,
        ),
        "InterPodAffinity": Plugin(
            filter=interpod_filter,
            rank=interpod_rank,
            node_facts=_WHERE,
            helped_by=NODES_COME_AND_CHANGE
            | {Event.POD_GONE, Event.POD_PLACED, Event.POD_CHANGED, Event.NAMESPACE_CHANGED},
            row_only=False,
            cache_key=required_wanted,
            rank_key=wishes_wanted,
        ),
        "ImageLocality": Plugin(score=image_locality, row_only=False, cache_key=images_wanted),
        "NodeResourcesFitPlus": Plugin(
            score=fit_plus_score,
            score_one=fit_plus_score_one,
            node_facts=_FIT_FACTS | {"resources.nonzeroRequested"},
            pod_facts=frozenset({"resources.request", "containers"}),
        ),
        "ScarceResourceAvoidance": Plugin(
            score=scarce_avoidance,
            node_facts=frozenset({KINDS}),
            pod_facts=frozenset({"resources.request"}),
        ),
        "AmplifiedCPU": Plugin(
            filter=amplified_cpu,
            filter_one=amplified_cpu_one,
            node_facts=_FIT_FACTS | {"amplification.cpu", "ownedCPU"},
            pod_facts=frozenset({"resources.request"}),
            helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
        ),
    }
)
"""All plugins, in the order of the manual."""
