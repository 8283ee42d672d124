"""The plugins that scheduling policies may name, with their parameters.

A plugin is an algorithm that the scheduler has built in; policy says when it is used and with which
parameters. The names stand here so that a misspelt one is found when the policy is compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING: Mapping[str, str] = MappingProxyType({})
_ANYTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})
_NETWORK_ORDER = ("MostExisting", "FewestExisting", "LeastRoom", "MostRoom")
_LEAST_OR_MOST = ("LeastAllocated", "MostAllocated")


@dataclass(frozen=True, slots=True)
class PluginName:
    """What a policy may say of a plugin: where it may stand, the meaning of each parameter, and the texts that some of
    them take, by itself or for each resource. As a filter, one that `checks_room` refuses nodes that are full.
    """

    name: str
    meaning: str
    filters: bool = False
    scores: bool = False
    preempts: bool = False
    checks_room: bool = False
    parameters: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _ANYTHING)


PLUGINS: Mapping[str, PluginName] = MappingProxyType(
    {
        one.name: one
        for one in (
            PluginName(
                "ElasticQuota",
                "Pods that would have more than their quota may, as QuotaTree says; they wait before the queue.",
                filters=True,
            ),
            PluginName(
                "NodeUnschedulable",
                "Cordoned nodes take only pods that tolerate the taint `node.kubernetes.io/unschedulable`.",
                filters=True,
            ),
            PluginName("NodeName", "A pod that names its node goes nowhere else.", filters=True),
            PluginName(
                "TaintToleration",
                "As a filter, nodes whose taints a pod does not tolerate; as a score, how many taints it would avoid.",
                filters=True,
                scores=True,
            ),
            PluginName(
                "NodeAffinity",
                "As a filter, the pod's node selector and required affinity; as a score, its preferred affinity.",
                filters=True,
                scores=True,
            ),
            PluginName(
                "NodeResourcesFit",
                "As a filter, room for what the pod requests; as a score, how much would be left.",
                filters=True,
                scores=True,
                checks_room=True,
                parameters=MappingProxyType(
                    {
                        "ignoredResources": "Names of extended resources that are not looked at.",
                        "ignoredResourceGroups": "What stands before `/` in names of such resources.",
                        "strategy": "`LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.",
                        "weights": "Weight of each resource.",
                        "shape": "Score, 0 to 10, by share of use, such as `{0%: 0, 100%: 10}`.",
                    }
                ),
                choices=MappingProxyType({"strategy": (*_LEAST_OR_MOST, "RequestedToCapacityRatio")}),
            ),
            PluginName(
                "NodeResourcesBalancedAllocation",
                "How evenly a node's resources would be used.",
                scores=True,
                parameters=MappingProxyType(
                    {
                        "resources": "Names of the resources.",
                        "variant": "`classic` for the balance with the pod, `delta` for how the pod changes it.",
                    }
                ),
                choices=MappingProxyType({"variant": ("classic", "delta")}),
            ),
            PluginName(
                "NodePorts", "Nodes where another pod has a host port that the pod wants.", filters=True
            ),
            PluginName(
                "VolumeRestrictions",
                "Disks that are in use elsewhere, and claims of the mode ReadWriteOncePod that another pod has.",
                filters=True,
            ),
            PluginName(
                "NodeVolumeLimits",
                "Nodes to which a storage driver can attach no more volumes.",
                filters=True,
            ),
            PluginName(
                "VolumeBinding",
                "Nodes that the pod's volumes cannot come to; chooses volumes for claims that wait for a pod.",
                filters=True,
                parameters=MappingProxyType(
                    {"bindTimeout": "How long a pod waits on its node's choice for its volumes to be bound."}
                ),
            ),
            PluginName(
                "VolumeZone",
                "Nodes outside the zones that the pod's volumes are labelled with.",
                filters=True,
            ),
            PluginName(
                "PodTopologySpread",
                "As a filter, constraints of even spread that must hold; as a score, those that had better hold.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "defaultConstraints": "Greatest skew by topology label, for pods without constraints that "
                        "services or controllers select; only scores.",
                        "requiredDefaultConstraints": "The same for constraints that refuse nodes.",
                        "scoreNodesWithoutLabel": "Whether default constraints score nodes that lack a label.",
                    }
                ),
            ),
            PluginName(
                "InterPodAffinity",
                "As a filter, required affinity and anti-affinity between pods; as a score, the preferred ones.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "hardPodAffinityWeight": "Weight, 0 to 100, of a pod on the node that requires the new one.",
                        "ignorePreferredTermsOfExistingPods": "Whether only pods with wishes of their own are scored.",
                    }
                ),
            ),
            PluginName("ImageLocality", "How much of the pod's images a node has already.", scores=True),
            PluginName(
                "NodeResourcesFitPlus",
                "How well a pod fits when each resource has a strategy of its own.",
                scores=True,
                parameters=MappingProxyType(
                    {
                        "strategies": "`LeastAllocated` or `MostAllocated` by resource; others are not looked at.",
                        "weights": "Weight of each of them.",
                    }
                ),
                choices=MappingProxyType({"strategies": _LEAST_OR_MOST}),
            ),
            PluginName(
                "ScarceResourceAvoidance",
                "How little of what a node has beyond the pod's needs is scarce.",
                scores=True,
                parameters=MappingProxyType({"resources": "Names of the scarce resources."}),
            ),
            PluginName(
                "AmplifiedCPU",
                "On nodes whose CPUs are sold more than once, pods that own CPUs count as often as these are sold.",
                filters=True,
                parameters=MappingProxyType({"owns": "Whether the pod gets CPUs of its own."}),
            ),
            PluginName(
                "Reservation",
                "Pods that own a Reservation take from what it keeps on its node. As a filter, nodes without enough of it, and of its node; as "
                "a score, how full it would be, or 1000 where the order of Reservations says which is first.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "checksTaints": "Whether taints of Reservations keep off pods that say nothing of Reservations, too.",
                        "ignoredResources": "Extended resources that are not looked at.",
                        "ignoredResourceGroups": "What stands before `/` in the names of such resources.",
                    }
                ),
            ),
            PluginName(
                "NodeNUMAResource",
                "CPUs of their own and places in NUMA zones, as the kind CPUTopology says: as a filter, nodes with enough of both; as a "
                "score, how full the zones of a pod would be, or its node where it is in none.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "strategy": "`LeastAllocated` or `MostAllocated`.",
                        "weights": "Weight of each resource; of those that a node lacks none counts.",
                    }
                ),
                choices=MappingProxyType({"strategy": _LEAST_OR_MOST}),
            ),
            PluginName(
                "DeviceShare",
                "As a filter, devices that are free enough, as the kind DeviceSharing deals them out; as a score, how full they "
                "would be.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "strategy": "`LeastAllocated`, `MostAllocated`, `FragmentationGradient`: how much more of free devices "
                        "usual pods could use, by `usualPods` of DeviceSharing, where pods without devices have a score, too; or "
                        "`Policy`: what `score` of DeviceSharing says.",
                        "weights": "Weight of each resource; of those that a type lacks none counts.",
                    }
                ),
                choices=MappingProxyType({"strategy": (*_LEAST_OR_MOST, "FragmentationGradient", "Policy")}),
            ),
            PluginName(
                "Coscheduling",
                "Pods of a gang run together or not at all, as the kind GangScheduling says.",
                filters=True,
            ),
            PluginName(
                "NetworkTopology",
                "As a filter, all nodes but the one that a pod is planned on with its gang; as a score, how near a pod is to "
                "those of its group in the network (annotation `scheduling.koordinator.sh/network-topology-selector`), as "
                "the ClusterNetworkTopology `default` has it.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "order": "What places are compared by, in this order, each from the node up to the whole cluster: "
                        "`MostExisting` or `FewestExisting` pods of the group, `LeastRoom` or `MostRoom`, in nodes that the "
                        "pod fits on. The name decides last."
                    }
                ),
                choices=MappingProxyType({"order": _NETWORK_ORDER}),
            ),
            PluginName(
                "DefaultPreemption",
                "Fewest and least important pods go from one node, disruption budgets kept as far as possible.",
                preempts=True,
            ),
        )
    }
)
"""All plugins, in the order of the manual."""
