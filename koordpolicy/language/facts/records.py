"""The table of all records, and the small ones."""

from koordpolicy.language.cel.types import (
    AMOUNT,
    BOOL,
    CPU,
    INT,
    MEMORY,
    STRING,
    TIMESTAMP,
    list_of,
    map_of,
    record,
)
from koordpolicy.language.facts.gang import GANG, GANG_DECLARATION, POD_GROUP
from koordpolicy.language.facts.node import NODE
from koordpolicy.language.facts.pod import CONTAINER, POD
from koordpolicy.language.facts.pod_spec import CONTAINER_PORT, TOLERATION, VOLUME
from koordpolicy.language.facts.quota import BINDING, NAMESPACE_QUOTAS, QUOTA, QUOTA_GROUP, QUOTA_PROFILE
from koordpolicy.language.facts.reservation import RESERVATION
from koordpolicy.language.facts.rollout import ROLLOUT
from koordpolicy.language.facts.table import (
    BASIC,
    CENTRAL,
    TIERS,
    USUAL_TIME,
    Component,
    Components,
    Fact,
    FactTable,
    Record,
    by_name,
    each,
)
from koordpolicy.language.facts.workload import WORKLOAD
from koordpolicy.language.facts.yarn import YARN

_MANAGER: Components = frozenset({Component.MANAGER})
_ZONE: Components = frozenset({Component.MANAGER, Component.AGENT, Component.YARN_OPERATOR})
_HOST: Components = frozenset({Component.MANAGER, Component.AGENT, Component.YARN_OPERATOR})
_DEVICES: Components = frozenset({Component.MANAGER, Component.SCHEDULER, Component.YARN_OPERATOR})

NAMESPACE = Record(
    "namespace",
    "The namespace of the pod that is decided on.",
    (
        Fact("name", STRING, "Name of the namespace.", CENTRAL),
        Fact("labels", map_of(STRING, STRING), "Labels of the namespace.", CENTRAL),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the namespace.", CENTRAL),
    ),
)

ZONE = Record(
    "zone",
    "One NUMA zone of a node.",
    (
        Fact("index", INT, "Number of the zone on its node, from 0.", _ZONE),
        Fact("count", INT, "How many zones the node has.", _ZONE, usual=1),
        *each("capacity", BASIC, "Capacity of the zone for {resource}.", _ZONE),
        *each("allocatable", {**BASIC, **TIERS}, "Allocatable {resource} of the zone.", _ZONE),
        *each("requested", {**BASIC, **TIERS}, "{resource} requested by pods allocated to the zone.", _ZONE),
        by_name("resources.allocatable", "Allocatable amounts of the zone by resource name.", _ZONE),
        by_name("resources.requested", "Requested amounts of the zone by resource name.", _ZONE),
    ),
)

HOST_APPLICATION = Record(
    "hostApplication",
    "An application on a node that runs outside Kubernetes and is measured.",
    (
        Fact("name", STRING, "Name of the application.", _HOST),
        Fact("qos", STRING, "Its QoS class; empty for none.", _HOST),
        Fact("band", STRING, "Its priority band; empty for none.", _HOST),
        Fact(
            "cgroupBase",
            STRING,
            "Control group that it stands in, such as `KubepodsBesteffort`; empty when the node does not say.",
            frozenset({Component.AGENT}),
        ),
        Fact("usage.cpu", CPU, "Its measured use of CPU.", _HOST),
        Fact("usage.memory", MEMORY, "Its measured use of memory.", _HOST),
    ),
)

CLUSTER = Record(
    "cluster",
    "The cluster as a whole.",
    (
        Fact("name", STRING, "Name of the cluster as configured; empty when it has none.", CENTRAL),
        Fact("nodes", INT, "How many nodes the cluster has.", CENTRAL - {Component.WEBHOOK}),
        Fact("pods", INT, "How many pods are pending or running.", CENTRAL - {Component.WEBHOOK}),
        *each(
            "allocatable",
            BASIC,
            "Sum of allocatable {resource} over all nodes.",
            CENTRAL - {Component.WEBHOOK},
        ),
        *each(
            "requested", BASIC, "Sum of requested {resource} over all nodes.", CENTRAL - {Component.WEBHOOK}
        ),
    ),
)

_SCHEDULER: Components = frozenset({Component.SCHEDULER})

CANDIDATE = Record(
    "candidate",
    "A node with the pods that would have to go for another one.",
    (
        Fact("node", STRING, "Name of the node.", _SCHEDULER),
        Fact("violations", INT, "How many of the pods a PodDisruptionBudget would keep.", _SCHEDULER),
        Fact("victims", INT, "How many pods would have to go.", _SCHEDULER, usual=1),
        Fact("highestPriority", INT, "Highest priority among them.", _SCHEDULER),
        Fact(
            "prioritySum", INT, "Sum over them of priority + 2147483648, which is never negative.", _SCHEDULER
        ),
        Fact(
            "earliestStart",
            TIMESTAMP,
            "When the first of those with the highest priority was taken on; now for one that is not yet.",
            _SCHEDULER,
            usual=USUAL_TIME,
        ),
        Fact("pods", list_of(record("pod")), "The pods, the most important first.", _SCHEDULER),
    ),
)

DEVICE = Record(
    "device",
    "A device of a node.",
    (
        Fact("type", STRING, "Its type: `gpu`, `fpga` or `rdma`.", _DEVICES),
        Fact("healthy", BOOL, "Whether its agent calls it healthy.", _DEVICES),
        Fact("labels", map_of(STRING, STRING), "Its labels.", _DEVICES),
        Fact("resources", map_of(STRING, AMOUNT), "What it offers, by resource name.", _DEVICES),
        Fact("index", INT, "Its number on its node, among those of its type, from 0 (`minor`).", _SCHEDULER),
        Fact("numa", INT, "The NUMA zone that it is plugged in at; -1 where nobody knows.", _SCHEDULER),
        Fact("free", INT, "How much of it is free, in percent.", _SCHEDULER),
        Fact("used", BOOL, "Whether a pod has anything of it.", _SCHEDULER),
        Fact(
            "gradient",
            INT,
            "How much more of its node's devices usual pods could use if the pod got this one, 0 to 100: 50 for no change, and "
            "where policy names no usual pods.",
            _SCHEDULER,
        ),
        Fact(
            "lot",
            INT,
            "A number from 0 to 999,999 as if drawn, another one for each pod and device, and the same whenever it is asked for.",
            _SCHEDULER,
        ),
    ),
)

DEVICE_SET = Record(
    "deviceSet",
    "The devices of one type on a node as they are, and what a pod asks of them.",
    (
        Fact("count", INT, "How many are healthy.", _SCHEDULER),
        Fact("idle", INT, "How many of these are free as a whole.", _SCHEDULER),
        Fact("free", INT, "What is free of all of them, in percent of one.", _SCHEDULER),
        Fact(
            "sorts",
            map_of(STRING, INT),
            "How many pods have some of them, by sort: `shared` of those with a part of a device, else how many devices, as `2`.",
            _SCHEDULER,
        ),
        Fact("asked.count", INT, "How many the pod asks for.", _SCHEDULER),
        Fact("asked.each", INT, "How much of each, in percent.", _SCHEDULER),
        Fact("asked.sort", STRING, "Of which sort the pod is.", _SCHEDULER),
        Fact(
            "taken.idle",
            INT,
            "How many are free as a whole of those that have least free among them that would do for the pod.",
            _SCHEDULER,
        ),
        Fact("taken.free", INT, "What those have free together, in percent of one.", _SCHEDULER),
    ),
)

DEVICE_ALLOCATION = Record(
    "deviceAllocation",
    "What a pod is given of the devices of one type.",
    (
        Fact("node", STRING, "The name of the node.", _SCHEDULER),
        Fact("indexes", list_of(INT), "The numbers of the devices.", _SCHEDULER),
        Fact("ids", list_of(STRING), "Their IDs; empty for one that has none.", _SCHEDULER),
        Fact("percents", list_of(INT), "What it has of each, in percent.", _SCHEDULER),
        Fact(
            "template",
            STRING,
            "The template of shared resources that the device is divided by; empty for none.",
            _SCHEDULER,
        ),
    ),
)

RESOURCE_SPEC = Record(
    "resourceSpec",
    "What a pod says of how it wants CPUs and NUMA zones (annotations `resource-spec` and `numa-topology-spec`).",
    (
        Fact("requiredBinding", STRING, "`requiredCPUBindPolicy`; empty where it is not said.", _SCHEDULER),
        Fact("preferredBinding", STRING, "`preferredCPUBindPolicy`.", _SCHEDULER),
        Fact("exclusive", STRING, "`preferredCPUExclusivePolicy`.", _SCHEDULER),
        Fact("alignment", STRING, "`numaTopologyPolicy`.", _SCHEDULER),
        Fact("zoneExclusive", STRING, "`singleNUMANodeExclusive`.", _SCHEDULER),
    ),
)

TOPOLOGY = Record(
    "topology",
    "What a NodeResourceTopology says of its node.",
    (
        Fact("cpus", INT, "How many CPUs the node has.", _SCHEDULER, usual=1),
        Fact("zones", INT, "How many NUMA zones.", _SCHEDULER, usual=1),
        Fact("cpuManager", STRING, "Policy of the kubelet's CPU manager: `none` or `static`.", _SCHEDULER),
        Fact("fullPCPUsOnly", BOOL, "Whether that gives whole cores only.", _SCHEDULER),
        Fact("policies", list_of(STRING), "Topology policies of the kubelet.", _SCHEDULER),
    ),
)

COLOCATION_PROFILE = Record(
    "colocationProfile",
    "A ClusterColocationProfile object.",
    (
        Fact("name", STRING, "Name of the object.", _MANAGER),
        Fact("labels", map_of(STRING, STRING), "Labels of the object.", _MANAGER),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the object.", _MANAGER),
    ),
)

FACTS = FactTable(
    (
        NODE,
        POD,
        CONTAINER,
        CONTAINER_PORT,
        TOLERATION,
        VOLUME,
        NAMESPACE,
        ZONE,
        HOST_APPLICATION,
        DEVICE,
        DEVICE_SET,
        DEVICE_ALLOCATION,
        RESOURCE_SPEC,
        TOPOLOGY,
        RESERVATION,
        CLUSTER,
        CANDIDATE,
        GANG_DECLARATION,
        GANG,
        POD_GROUP,
        QUOTA,
        QUOTA_GROUP,
        NAMESPACE_QUOTAS,
        QUOTA_PROFILE,
        COLOCATION_PROFILE,
        WORKLOAD,
        YARN,
        BINDING,
        ROLLOUT,
    )
)
"""Every record of the language."""
