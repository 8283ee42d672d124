"""Facts of a node: what it has, what is asked of it, what is used."""

from koordpolicy.language.cel.types import (
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    PERCENT,
    STRING,
    TIMESTAMP,
    list_of,
    map_of,
    record,
)
from koordpolicy.language.facts.table import (
    BASIC,
    NATIVE,
    TIERS,
    Component,
    Components,
    Fact,
    Record,
    by_name,
    each,
)

_AGENT = Component.AGENT
_YARN = Component.YARN_OPERATOR
_NODE: Components = frozenset({Component.MANAGER, Component.SCHEDULER, _AGENT, Component.DESCHEDULER, _YARN})
_OF_OBJECTS: Components = _NODE | {Component.WEBHOOK}
"""Who supplies what follows from a node's object alone."""
_OVERRIDES: Components = frozenset({Component.MANAGER, Component.WEBHOOK, _AGENT, _YARN})
_PLANNERS: Components = frozenset({Component.MANAGER, Component.SCHEDULER, Component.DESCHEDULER, _YARN})
_OF_MACHINES: Components = frozenset({Component.MANAGER, _YARN})
_COUNTED = {**NATIVE, "pods": INT, **TIERS}

NODE = Record(
    "node",
    "One node of the cluster, as the asking component sees it.",
    (
        Fact("name", STRING, "Name of the node.", _OF_OBJECTS),
        Fact("labels", map_of(STRING, STRING), "Labels of the node.", _OF_OBJECTS),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the node.", _OF_OBJECTS),
        Fact("unschedulable", BOOL, "Whether the node is cordoned (`spec.unschedulable`).", _OF_OBJECTS),
        Fact(
            "conditions",
            map_of(STRING, STRING),
            "Status of each condition by its type: `True`, `False` or `Unknown` for `Ready`.",
            frozenset({Component.MANAGER, Component.WEBHOOK, _YARN}),
        ),
        *each("capacity", _COUNTED, "Capacity for {resource} (`status.capacity`).", _OF_OBJECTS),
        *each("allocatable", _COUNTED, "Allocatable {resource} as pods may request it.", _OF_OBJECTS),
        *each("physical", _COUNTED, "Allocatable {resource} before amplification.", _OF_OBJECTS),
        *each("requested", _COUNTED, "Sum of {resource} requested by the pods on the node.", _NODE),
        *each(
            "nonzeroRequested",
            _COUNTED,
            "Sum of {resource} requested by the pods on the node, with the scheduler's default for pods "
            "that request none.",
            _PLANNERS,
        ),
        *each("free", _COUNTED, "Allocatable less requested {resource}; negative when overcommitted.", _NODE),
        *each(
            "reserved", BASIC, "The larger of kubelet and annotation reservation of {resource}.", _OF_OBJECTS
        ),
        *each("reserved.kubelet", BASIC, "Capacity less allocatable {resource}, at least zero.", _OF_OBJECTS),
        *each(
            "reserved.annotation", BASIC, "Reservation of {resource} by the node's annotation.", _OF_OBJECTS
        ),
        *each(
            "usage.total", BASIC, "Measured use of {resource} on the whole node.", _NODE, may_be_missing=True
        ),
        *each(
            "usage.system",
            BASIC,
            "Measured use of {resource} outside pods and known host applications.",
            _NODE,
            may_be_missing=True,
        ),
        *each(
            "usage.prod",
            BASIC,
            "Measured use of {resource} by pods of the prod band.",
            _NODE,
            may_be_missing=True,
        ),
        *each(
            "usage.highPriority",
            BASIC,
            "Measured use of {resource} by pods that are not of the overcommitted band that is decided, nor of "
            "one below it.",
            frozenset({Component.MANAGER}),
            may_be_missing=True,
        ),
        *(
            fact
            for name, words in (
                ("avg", "Average"),
                ("p50", "Median"),
                ("p90", "90th percentile"),
                ("p95", "95th percentile"),
                ("p99", "99th percentile"),
            )
            for fact in each(
                f"usage.{name}",
                BASIC,
                words + " of the node's use of {resource} over the longest recorded window.",
                _NODE,
                may_be_missing=True,
            )
        ),
        *each(
            "load",
            BASIC,
            "Measured use of {resource}, plus estimates for pods that the measurement does not show yet.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        *each(
            "load.prod",
            BASIC,
            "Load of {resource} by pods of the bands that the scheduling profile calls prod.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        Fact(
            "metric.known",
            BOOL,
            "Whether the cluster has a metric of the node, filled or not.",
            frozenset({Component.SCHEDULER}),
        ),
        Fact(
            "metric.age",
            DURATION,
            "How long ago the node's metrics were reported; the scheduler reads `now - node.metric.updatedAt`.",
            # A column that changed with every tick of the clock would be written anew for each decision.
            _NODE - {Component.SCHEDULER},
            may_be_missing=True,
        ),
        Fact(
            "metric.updatedAt",
            TIMESTAMP,
            "When the node's metrics were reported.",
            _NODE,
            may_be_missing=True,
        ),
        *each(
            "prediction.prodReclaimable",
            BASIC,
            "Requested {resource} of prod pods that is predicted to stay unused.",
            frozenset({Component.MANAGER, _YARN}),
            may_be_missing=True,
        ),
        Fact("pods", list_of(record("pod")), "The pods on the node.", _NODE),
        Fact(
            "hostApplications",
            list_of(record("hostApplication")),
            "Measured applications on the node that run outside Kubernetes.",
            frozenset({Component.MANAGER, _AGENT, _YARN}),
        ),
        Fact(
            "cpuNormalization",
            DOUBLE,
            "How fast the node's CPUs are, compared with those of a common model, by the node's annotation.",
            _OF_OBJECTS,
            may_be_missing=True,
        ),
        *(
            Fact(f"cpuInfo.{name}", kind, meaning, _OF_MACHINES, may_be_missing=True)
            for name, kind, meaning in (
                ("model", STRING, "Model of the node's CPUs, by its NodeResourceTopology."),
                ("hyperThreading", BOOL, "Whether its cores run several threads each."),
                ("turbo", BOOL, "Whether its cores may run faster than they are rated."),
            )
        ),
        Fact(
            "devices",
            list_of(record("device")),
            "The devices of the node, by its Device object; empty without one.",
            _OF_MACHINES,
        ),
        Fact(
            "deviceLabels",
            map_of(STRING, STRING),
            "Labels of the node's Device object; empty without one.",
            _OF_MACHINES,
        ),
        Fact(
            "amplification.cpu",
            DOUBLE,
            "How often the node's CPUs are sold, by the node's annotation; 0 where that cannot be read.",
            _OF_OBJECTS,
            may_be_missing=True,
        ),
        Fact(
            "networkBandwidth",
            BANDWIDTH,
            "What the node's network can carry in each direction, by the node's annotation.",
            _OVERRIDES,
            may_be_missing=True,
        ),
        *(
            Fact(
                f"overrides.{name}",
                kind,
                f"{meaning}, as the node itself says.",
                _OVERRIDES,
                may_be_missing=True,
            )
            for name, kind, meaning in (
                ("enabled", BOOL, "Whether anything of the node is sold a second time"),
                ("cpuReclaim", PERCENT, "How full of CPU it may become with batch work"),
                ("memoryReclaim", PERCENT, "How full of memory it may become with batch work"),
                ("cpuPolicy", STRING, "By what CPU is counted as taken"),
                ("memoryPolicy", STRING, "By what memory is counted as taken"),
                ("batchCPULimit", PERCENT, "Most batch CPU it offers, of its capacity"),
                ("batchMemoryLimit", PERCENT, "Most batch memory it offers, of its capacity"),
                ("midMode", STRING, "How mid resources are calculated"),
                ("midCPULimit", PERCENT, "Most mid CPU it offers, of its capacity"),
                ("midMemoryLimit", PERCENT, "Most mid memory it offers, of its capacity"),
                ("midUnallocated", PERCENT, "Share of what nobody has requested that is offered as mid"),
                ("midStaticCPU", PERCENT, "Share of its CPU that is offered as mid in any case"),
                ("midStaticMemory", PERCENT, "Share of its memory that is offered as mid in any case"),
                ("staleAfter", DURATION, "Age beyond which its metrics count as missing"),
                ("refreshAfter", DURATION, "Age beyond which amounts are written anyway"),
                ("changedBy", PERCENT, "Relative change beyond which amounts are written"),
                ("reportEvery", DURATION, "How often its agent reports"),
                ("averagesOver", DURATION, "Window of averages that its agent reports"),
                ("percentilesOver", list_of(DURATION), "Windows of percentiles that its agent reports"),
                ("memoryMeasure", STRING, "What counts as used memory of it"),
            )
        ),
        Fact(
            "overrides.problems",
            list_of(STRING),
            "What the node says of these and nobody can follow: text that cannot be read, values out of bounds.",
            _OVERRIDES,
        ),
        Fact(
            "ownedCPU",
            CPU,
            "CPUs of the node that pods have for themselves.",
            frozenset({Component.SCHEDULER}),
        ),
        Fact(
            "suppression.byQuota",
            BOOL,
            "Whether best-effort work on the node is held back by one quota for all of it.",
            frozenset({_AGENT}),
        ),
        Fact(
            "kubelet.cpuManager",
            STRING,
            "How the node's kubelet places containers on CPUs: `none` or `static`.",
            frozenset({_AGENT}),
            usual="none",
        ),
        Fact(
            "system.hasCPUs",
            BOOL,
            "Whether the node keeps CPUs for pods of class `SYSTEM`.",
            frozenset({_AGENT}),
        ),
        Fact(
            "zones",
            list_of(record("zone")),
            "The NUMA zones of the node; empty when unknown.",
            _NODE - {Component.SCHEDULER},
        ),
        by_name("resources.capacity", "Capacity by resource name.", _OF_OBJECTS),
        by_name("resources.allocatable", "Allocatable amounts by resource name.", _OF_OBJECTS),
        by_name(
            "resources.physical", "Allocatable amounts before amplification, by resource name.", _OF_OBJECTS
        ),
        by_name("resources.requested", "Requested amounts by resource name.", _NODE),
        by_name(
            "resources.nonzeroRequested",
            "Requested amounts with the scheduler's defaults, by resource name.",
            _PLANNERS,
        ),
        by_name("resources.usage", "Measured use by resource name.", _NODE, may_be_missing=True),
        by_name(
            "resources.load",
            "Measured use plus estimates for new pods, by resource name.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        by_name(
            "resources.prodLoad",
            "Load by pods of the bands that the scheduling profile calls prod, by resource name.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        by_name(
            "resources.filterLoad",
            "Load over the window that the scheduling profile filters by, by resource name.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        by_name(
            "resources.scoreLoad",
            "Load over the window that the scheduling profile scores by, by resource name.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        *(
            Fact(
                f"usageThresholds.{group}",
                map_of(STRING, PERCENT),
                f"The node's own limits of {words}, by its annotation; absent where it sets none.",
                frozenset({Component.SCHEDULER}),
                may_be_missing=True,
            )
            for group, words in (
                ("usage", "load"),
                ("prod", "load by prod pods"),
                ("aggregated", "load over a window"),
            )
        ),
        Fact(
            "usageThresholds.aggregation",
            STRING,
            "Percentile that the node's own aggregated limits are meant for, such as `p95`.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
        Fact(
            "usageThresholds.window",
            DURATION,
            "Window that the node's own aggregated limits are meant for; 0 for the longest there is.",
            frozenset({Component.SCHEDULER}),
            may_be_missing=True,
        ),
    ),
)
