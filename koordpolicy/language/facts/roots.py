"""The names an expression begins with."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from koordpolicy.language.cel.types import DOUBLE, INT, STRING, TIMESTAMP, Type, record
from koordpolicy.language.facts.table import CENTRAL, EVERYWHERE, USUAL_TIME, Component, Components


@dataclass(frozen=True, slots=True)
class Root:
    """A name that stands for a fact by itself or for a record of facts.

    `suppliers` are the components that have it at one decision point or another; which points,
    each kind says. A root that `may_be_missing` is absent there now and then. `usual` is as for facts.
    """

    name: str
    type: Type
    meaning: str
    suppliers: Components
    may_be_missing: bool = False
    usual: str | None = None


_WEBHOOK: Components = frozenset({Component.WEBHOOK})
_QUOTAS: Components = _WEBHOOK | {Component.SCHEDULER}

ROOTS: Mapping[str, Root] = MappingProxyType(
    {
        root.name: root
        for root in (
            Root(
                "node",
                record("node"),
                "The node that is decided on, or that a pod may go to.",
                frozenset(
                    {
                        Component.WEBHOOK,
                        Component.MANAGER,
                        Component.SCHEDULER,
                        Component.AGENT,
                        Component.DESCHEDULER,
                        Component.YARN_OPERATOR,
                    }
                ),
            ),
            Root(
                "target",
                record("node"),
                "The node that a pod might move to; `node` is where it is.",
                frozenset({Component.DESCHEDULER}),
            ),
            Root(
                "oldNode",
                record("node"),
                "The node before an update or deletion.",
                _WEBHOOK,
                may_be_missing=True,
            ),
            Root(
                "pod",
                record("pod"),
                "The pod that is decided on.",
                EVERYWHERE - {Component.YARN_OPERATOR},
            ),
            Root(
                "container",
                record("container"),
                "The container that is decided on.",
                frozenset({Component.WEBHOOK, Component.MANAGER, Component.AGENT, Component.RUNTIME_PROXY}),
            ),
            Root(
                "oldPod",
                record("pod"),
                "The pod before an update or deletion.",
                _WEBHOOK,
                may_be_missing=True,
            ),
            Root(
                "victim",
                record("pod"),
                "A pod on a node that might have to go for the pod that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "nominated",
                record("pod"),
                "A pod that waits for its place on a node, which others are leaving for it.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "candidate",
                record("candidate"),
                "A node on which the pod that is decided on would fit if some pods went.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "gangDeclaration",
                record("gangDeclaration"),
                "What is said of the gang that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "gang",
                record("gang"),
                "The gang that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "podGroup",
                record("podGroup"),
                "The PodGroup object that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "namespaceObject",
                record("namespace"),
                "The namespace of the pod, named as in Kubernetes: `namespace` is a reserved word.",
                CENTRAL,
            ),
            Root(
                "zone",
                record("zone"),
                "The NUMA zone that is decided on.",
                frozenset({Component.MANAGER, Component.AGENT}),
            ),
            Root(
                "device",
                record("device"),
                "The device of a node that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "devices",
                record("deviceSet"),
                "The devices of the node that is decided on, of the type that the document is about.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "allocated",
                record("deviceAllocation"),
                "What the pod is given of the devices that the document is about.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "resourceSpec",
                record("resourceSpec"),
                "What the pod that is decided on says of CPUs and NUMA zones.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "topology",
                record("topology"),
                "What is said of the CPUs of the node that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "reservation",
                record("reservation"),
                "The Reservation that is decided on.",
                frozenset({Component.SCHEDULER}),
            ),
            Root("cluster", record("cluster"), "The cluster as a whole.", CENTRAL),
            Root(
                "operation",
                STRING,
                "What is asked of the API server: `CREATE`, `UPDATE` or `DELETE`.",
                _WEBHOOK,
                usual="CREATE",
            ),
            Root("user", STRING, "Name of the user who asks the API server.", _WEBHOOK),
            Root(
                "binding",
                record("binding"),
                "The binding that is decided on; `pod` is the bound pod.",
                _WEBHOOK,
            ),
            Root(
                "quota",
                record("quota"),
                "The quota that is decided on; of a pod, the quota that it belongs to.",
                _QUOTAS,
            ),
            Root(
                "victimQuota",
                record("quota"),
                "The quota that the `victim` belongs to; one without a name where it belongs to none.",
                frozenset({Component.SCHEDULER}),
            ),
            Root(
                "oldQuota",
                record("quota"),
                "The quota before an update or deletion.",
                _WEBHOOK,
                may_be_missing=True,
            ),
            Root("parentQuota", record("quota"), "The quota above the one that is decided on.", _WEBHOOK),
            Root(
                "siblingQuotas",
                record("quotaGroup"),
                "The other quotas below the same parent.",
                _WEBHOOK,
            ),
            Root(
                "childQuotas", record("quotaGroup"), "The quotas below the one that is decided on.", _WEBHOOK
            ),
            Root(
                "namespaceQuotas",
                record("namespaceQuotas"),
                "The quotas that the namespace of a pod leads to.",
                _QUOTAS,
            ),
            Root(
                "colocationProfile",
                record("colocationProfile"),
                "The ClusterColocationProfile object that selects the pod.",
                frozenset({Component.MANAGER}),
            ),
            Root(
                "quotaProfile",
                record("quotaProfile"),
                "The ElasticQuotaProfile that is followed.",
                frozenset({Component.MANAGER}),
            ),
            Root(
                "resource",
                STRING,
                "Name of the resource that is decided on.",
                frozenset({Component.MANAGER}),
                usual="cpu",
            ),
            Root(
                "workload",
                record("workload"),
                "The workload, and its container, that is decided on.",
                frozenset({Component.MANAGER}),
            ),
            Root(
                "yarn",
                record("yarn"),
                "The YARN NodeManager of the node that is decided on, as its ResourceManager knows it.",
                frozenset({Component.YARN_OPERATOR}),
            ),
            Root(
                "relief",
                DOUBLE,
                "How well the going of the pod would relieve its node: 2 where it uses just what its node uses too much of, less for "
                "more or for less; -1 where it was not measured.",
                frozenset({Component.DESCHEDULER}),
            ),
            Root(
                "replicas",
                INT,
                "How many pods the workload of the pod is to have: the scale of its controller, of a Deployment that of all its "
                "ReplicaSets; 1 for a pod without one.",
                frozenset({Component.DESCHEDULER}),
            ),
            Root("rollout", record("rollout"), "How a new revision does on its way.", EVERYWHERE),
            Root("now", TIMESTAMP, "The time of the decision.", EVERYWHERE, usual=USUAL_TIME),
        )
    }
)
"""Every root of the language. A kind names those that its decision points have."""
