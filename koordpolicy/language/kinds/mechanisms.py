"""The mechanisms that scheduling policies may name, with their parameters.

A mechanism is an algorithm that the scheduler has built in; policy says when it is used and with which
parameters. The names stand here so that a misspelt one is found when the policy is compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MechanismName:
    """What a policy may say of a mechanism: where it may stand, and the meaning of each parameter."""

    name: str
    meaning: str
    filters: bool = False
    scores: bool = False
    parameters: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


MECHANISMS: Mapping[str, MechanismName] = MappingProxyType(
    {
        one.name: one
        for one in (
            MechanismName(
                "NodeUnschedulable",
                "Cordoned nodes take only pods that tolerate the taint `node.kubernetes.io/unschedulable`.",
                filters=True,
            ),
            MechanismName("NodeName", "A pod that names its node goes nowhere else.", filters=True),
            MechanismName(
                "TaintToleration",
                "As a filter, nodes whose taints a pod does not tolerate; as a score, how many taints it would avoid.",
                filters=True,
                scores=True,
            ),
            MechanismName(
                "NodeAffinity",
                "As a filter, the pod's node selector and required affinity; as a score, its preferred affinity.",
                filters=True,
                scores=True,
            ),
            MechanismName(
                "NodeResourcesFit",
                "As a filter, room for what the pod requests; as a score, how much would be left.",
                filters=True,
                scores=True,
                parameters=MappingProxyType(
                    {
                        "ignoredResources": "Names of extended resources that are not looked at.",
                        "ignoredResourceGroups": "What stands before `/` in names of such resources.",
                        "strategy": "`LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.",
                        "weights": "Weight of each resource.",
                        "shape": "Score, 0 to 10, by share of use, such as `{0%: 0, 100%: 10}`.",
                    }
                ),
            ),
            MechanismName(
                "NodeResourcesBalancedAllocation",
                "How evenly a node's resources would be used.",
                scores=True,
                parameters=MappingProxyType(
                    {
                        "resources": "Names of the resources.",
                        "variant": "`classic` for the balance with the pod, `delta` for how the pod changes it.",
                    }
                ),
            ),
        )
    }
)
"""All mechanisms, in the order of the manual."""
