"""The mechanisms that policies name: one ordered table from name to implementation.

Each is a thin fit between a profile's parameters and an algorithm of `koordpolicy.mechanism`. To add
one: its name and parameters in `language/kinds/mechanisms.py`, its implementation in a module beside this.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.scheduler.events import Event
from koordpolicy.scheduler.mechanisms.base import NODES_COME_AND_CHANGE, Mechanism
from koordpolicy.scheduler.mechanisms.placement import (
    avoided_taints,
    node_name,
    node_unschedulable,
    preferred_affinity,
    required_affinity,
    taint_toleration,
)
from koordpolicy.scheduler.mechanisms.resources import balanced_score, fit_score, resources_fit

_PLACEMENT: Final = frozenset({"spec"})
"""Stands for what a pod's spec says of nodes, which has no facts of its own."""

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
        ),
        "NodeResourcesBalancedAllocation": Mechanism(
            score=balanced_score,
            node_facts=_FIT_FACTS,
            pod_facts=frozenset({"resources.request"}),
        ),
    }
)
"""All mechanisms, in the order of the manual."""
