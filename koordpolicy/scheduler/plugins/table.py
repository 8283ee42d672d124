"""The plugins that policies name: one ordered table from name to implementation.

Each is a module or a package with all that is its own. To add one: its name and parameters in
`language/kinds/plugins.py`, its package beside this, and a line here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from koordpolicy.scheduler.plugins import (
    devices,
    gang,
    images,
    interpod,
    numa,
    packing,
    placement,
    ports,
    preemption,
    quota,
    reservation,
    resources,
    spread,
    topology,
    volumes,
)
from koordpolicy.scheduler.plugins.base import Plugin

PLUGINS: Mapping[str, Plugin] = MappingProxyType(
    {
        "ElasticQuota": quota.ELASTIC_QUOTA,
        "NodeUnschedulable": placement.NODE_UNSCHEDULABLE,
        "NodeName": placement.NODE_NAME,
        "TaintToleration": placement.TAINT_TOLERATION,
        "NodeAffinity": placement.NODE_AFFINITY,
        "NodeResourcesFit": resources.NODE_RESOURCES_FIT,
        "NodeResourcesBalancedAllocation": resources.NODE_RESOURCES_BALANCED_ALLOCATION,
        "NodePorts": ports.NODE_PORTS,
        "VolumeRestrictions": volumes.RESTRICTIONS,
        "NodeVolumeLimits": volumes.LIMITS,
        "VolumeBinding": volumes.BINDING,
        "VolumeZone": volumes.ZONE,
        "PodTopologySpread": spread.POD_TOPOLOGY_SPREAD,
        "InterPodAffinity": interpod.INTER_POD_AFFINITY,
        "ImageLocality": images.IMAGE_LOCALITY,
        "NodeResourcesFitPlus": packing.NODE_RESOURCES_FIT_PLUS,
        "ScarceResourceAvoidance": packing.SCARCE_RESOURCE_AVOIDANCE,
        "AmplifiedCPU": packing.AMPLIFIED_CPU,
        "Reservation": reservation.RESERVATION,
        "NodeNUMAResource": numa.NODE_NUMA_RESOURCE,
        "DeviceShare": devices.DEVICE_SHARE,
        "Coscheduling": gang.COSCHEDULING,
        "NetworkTopology": topology.NETWORK_TOPOLOGY,
        "DefaultPreemption": preemption.DEFAULT_PREEMPTION,
    }
)
"""All plugins, in the order of the manual."""
