"""Facts of a pod and its containers."""

from koordpolicy.language.cel.types import (
    BOOL,
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
from koordpolicy.language.facts.pod_spec import CONTAINER_SPEC, POD_SPEC
from koordpolicy.language.facts.table import (
    BASIC,
    EVERYWHERE,
    NATIVE,
    TIERS,
    USUAL_TIME,
    Component,
    Components,
    Fact,
    Record,
    by_name,
    each,
)

_ALL = {**NATIVE, **TIERS}
_PLACED: Components = EVERYWHERE - {Component.WEBHOOK}
_MEASURED: Components = frozenset(
    {
        Component.MANAGER,
        Component.SCHEDULER,
        Component.AGENT,
        Component.DESCHEDULER,
        Component.YARN_OPERATOR,
    }
)
_ON_NODES: Components = frozenset({Component.MANAGER, Component.AGENT, Component.YARN_OPERATOR})
_AGENT: Components = frozenset({Component.AGENT})
_QUEUE: Components = frozenset({Component.SCHEDULER})
_DESCHEDULER: Components = frozenset({Component.DESCHEDULER})

POD = Record(
    "pod",
    "One pod: the one that is decided on, or an element of `node.pods`.",
    (
        Fact("name", STRING, "Name of the pod; empty before the API server generates one.", EVERYWHERE),
        Fact("namespace", STRING, "Namespace of the pod.", EVERYWHERE),
        Fact("uid", STRING, "UID of the pod; empty before it is stored.", EVERYWHERE),
        Fact("labels", map_of(STRING, STRING), "Labels of the pod.", EVERYWHERE),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the pod.", EVERYWHERE),
        Fact("nodeName", STRING, "Node the pod is bound to; empty while pending.", _PLACED),
        Fact(
            "phase",
            STRING,
            "Phase of the pod, such as `Pending` or `Running`.",
            EVERYWHERE,
            usual="Running",
        ),
        Fact("schedulerName", STRING, "Scheduler that the pod asks for.", EVERYWHERE),
        Fact(
            "priority", INT, "Numeric priority (`spec.priority`), when set.", EVERYWHERE, may_be_missing=True
        ),
        Fact("priorityClassName", STRING, "Name of its PriorityClass; empty without one.", EVERYWHERE),
        Fact(
            "preemptionPolicy",
            STRING,
            "Whether the pod may displace others, by its spec: `Never`, `PreemptLowerPriority` or empty.",
            EVERYWHERE,
        ),
        Fact(
            "schedulingGroup",
            STRING,
            "Name of Kubernetes' own PodGroup that the pod names (`spec.schedulingGroup`); empty without one.",
            EVERYWHERE,
        ),
        Fact("subPriority", INT, "Priority within the band, from the label; 0 without one.", EVERYWHERE),
        Fact(
            "priorityLabel",
            INT,
            "Priority within the band, from the label; absent where no number stands there.",
            _ON_NODES,
            may_be_missing=True,
        ),
        Fact(
            "evictionPriority",
            INT,
            "Which pods go first when a node runs short, by the pod's annotation: the lowest; 0 without one.",
            _ON_NODES,
        ),
        Fact(
            "evictionReasons",
            list_of(STRING),
            "For which reasons the pod may go when a node runs short, by its annotation: absent for any, empty where the "
            "annotation cannot be read.",
            _ON_NODES,
            may_be_missing=True,
        ),
        Fact(
            "ownsCPUs",
            BOOL,
            "Whether the scheduler has given the pod CPUs of its own.",
            _ON_NODES,
        ),
        Fact(
            "cpuZones",
            list_of(INT),
            "NUMA zones in which the scheduler has given the pod CPU, in its order; empty without any.",
            _ON_NODES,
        ),
        Fact(
            "oomScores",
            map_of(STRING, INT),
            "What the pod's annotations say of the kernel's choice of whom to kill, by container: -1000 to 1000.",
            _ON_NODES,
        ),
        Fact(
            "deviceNumbers",
            map_of(STRING, list_of(INT)),
            "Numbers (`minor`) of the devices that the scheduler has given the pod, by their type, such as `gpu`.",
            _ON_NODES,
        ),
        Fact(
            "deviceIDs",
            map_of(STRING, list_of(STRING)),
            "IDs of these devices, in the same order; empty for one without.",
            _ON_NODES,
        ),
        Fact(
            "kubernetesQoS",
            STRING,
            "Kubernetes QoS class: `Guaranteed`, `Burstable` or `BestEffort`.",
            EVERYWHERE,
            usual="Burstable",
        ),
        Fact(
            "qos",
            STRING,
            "Effective QoS class: the label's, else the one derived from Kubernetes QoS.",
            EVERYWHERE,
        ),
        Fact(
            "qosLabel", STRING, "QoS class of the label as written when known; empty without one.", EVERYWHERE
        ),
        Fact(
            "band",
            STRING,
            "Priority band, with the QoS class's default where neither label nor priority gives one.",
            EVERYWHERE,
        ),
        Fact("rawBand", STRING, "Priority band by label or priority alone; empty for none.", EVERYWHERE),
        *each("request", _ALL, "Requested {resource}, init containers and overhead included.", EVERYWHERE),
        *each("limit", _ALL, "Limit of {resource}, init containers and overhead included.", EVERYWHERE),
        *each(
            "nonzeroRequest",
            _ALL,
            "Requested {resource}, with the scheduler's default for containers that request none.",
            EVERYWHERE,
        ),
        *each("usage", BASIC, "Measured use of {resource} by the pod.", _MEASURED, may_be_missing=True),
        *(
            Fact(
                f"pressure.{resource}.{kind}",
                PERCENT,
                f"Share of the last ten seconds in which {words} of the pod's tasks waited for {resource_words}.",
                _AGENT,
                may_be_missing=True,
            )
            for resource, resource_words in (("cpu", "a CPU"), ("memory", "memory"), ("io", "a disk"))
            for kind, words in (("some", "some"), ("full", "all"))
        ),
        Fact(
            "cpi",
            DOUBLE,
            "Cycles of the CPU that the pod needs for each instruction.",
            _AGENT,
            may_be_missing=True,
        ),
        Fact(
            "schedulingDelay",
            PERCENT,
            "Time that the pod's tasks waited for a CPU, as a share of the time that has passed.",
            _AGENT,
            may_be_missing=True,
        ),
        Fact(
            "reported.band",
            STRING,
            "Priority band of the pod in the last node metric; absent when it is not reported.",
            _MEASURED,
            may_be_missing=True,
        ),
        by_name("resources.request", "Requested amounts by resource name.", EVERYWHERE),
        by_name("resources.limit", "Limits by resource name.", EVERYWHERE),
        by_name(
            "resources.nonzeroRequest",
            "Requested amounts with the scheduler's defaults, by resource name.",
            EVERYWHERE,
        ),
        by_name("resources.usage", "Measured use by resource name.", _MEASURED, may_be_missing=True),
        Fact("ownedByDaemonSet", BOOL, "Whether a DaemonSet controls the pod.", EVERYWHERE),
        Fact(
            "ownerKind",
            STRING,
            "Kind of the pod's controller, such as `ReplicaSet`; empty without one.",
            EVERYWHERE,
        ),
        Fact(
            "ownerKinds",
            list_of(STRING),
            "Kinds of all owners of the pod, its controller or not.",
            _DESCHEDULER,
        ),
        Fact("terminating", BOOL, "Whether the pod is being deleted.", _DESCHEDULER),
        Fact(
            "volumeKinds",
            list_of(STRING),
            "What the pod's volumes are, such as `emptyDir` or `persistentVolumeClaim`, each once.",
            _DESCHEDULER,
        ),
        Fact("ready", BOOL, "Whether the pod says that it is ready.", _DESCHEDULER),
        Fact("restarts", INT, "How often its containers were started again.", _DESCHEDULER),
        Fact("initRestarts", INT, "How often its init containers were, of these.", _DESCHEDULER),
        Fact(
            "states",
            list_of(STRING),
            "Its phase and why it is in that, and why its containers wait or have ended, such as `Failed`, `Evicted`, `CrashLoopBackOff`.",
            _DESCHEDULER,
        ),
        Fact("initStates", list_of(STRING), "Why its init containers wait or have ended.", _DESCHEDULER),
        Fact("exitCodes", list_of(INT), "With which codes its containers have ended.", _DESCHEDULER),
        Fact("initExitCodes", list_of(INT), "The same of its init containers.", _DESCHEDULER),
        Fact(
            "untoleratedTaints",
            list_of(STRING),
            "Taints of its node that keep pods away and that it does not tolerate (`NoSchedule`), as `key` or `key=value`.",
            _DESCHEDULER,
        ),
        Fact(
            "avoidedTaints",
            list_of(STRING),
            "The same of taints that ask to be avoided (`PreferNoSchedule`).",
            _DESCHEDULER,
        ),
        Fact(
            "matchesNode",
            BOOL,
            "Whether its node selector and required node affinity still match its node.",
            _DESCHEDULER,
        ),
        Fact(
            "preferenceHere",
            INT,
            "How much its node has of what its preferred node affinity asks for: the sum of the weights of terms that match.",
            _DESCHEDULER,
        ),
        Fact(
            "preferenceElsewhere",
            INT,
            "The same of the other node that has most of it, of those that may take it and have room for what it requests; 0 "
            "without one.",
            _DESCHEDULER,
        ),
        Fact(
            "deletionCost",
            INT,
            "What it costs to delete the pod, by its annotation; 0 without one that can be read.",
            _DESCHEDULER,
        ),
        Fact(
            "evictionCost",
            INT,
            "What it costs to move the pod, by its annotation: 2147483647 for what must not be moved; 0 without one that can be "
            "read.",
            _DESCHEDULER,
        ),
        Fact("createdAt", TIMESTAMP, "When the pod was created.", _PLACED, usual=USUAL_TIME),
        Fact(
            "startedAt",
            TIMESTAMP,
            "When the node took the pod on; absent until it says so, but now for a `victim`.",
            _PLACED,
            may_be_missing=True,
        ),
        Fact(
            "queuedAt",
            TIMESTAMP,
            "When the pod entered the scheduling queue, or came back to it after an attempt.",
            _QUEUE,
            usual=USUAL_TIME,
        ),
        *each(
            "estimate",
            BASIC,
            "What the scheduling profile estimates the pod to use of {resource}.",
            _QUEUE,
            may_be_missing=True,
        ),
        by_name(
            "resources.estimate",
            "What the scheduling profile estimates the pod to use, by resource name.",
            _QUEUE,
            may_be_missing=True,
        ),
        Fact(
            "estimation.factors",
            map_of(STRING, PERCENT),
            "The pod's own scaling factors of its estimate, by its annotation.",
            _QUEUE,
            may_be_missing=True,
        ),
        Fact(
            "estimation.afterScheduled",
            DURATION,
            "How long after its scheduling the pod wants its estimate to count, by its annotation.",
            _QUEUE,
            may_be_missing=True,
        ),
        Fact(
            "estimation.afterInitialized",
            DURATION,
            "The same, counted from the end of its init containers.",
            _QUEUE,
            may_be_missing=True,
        ),
        Fact(
            "containers",
            list_of(record("container")),
            "Containers of the pod in order of declaration.",
            EVERYWHERE,
        ),
        Fact(
            "extendedContainers",
            list_of(record("container")),
            "Containers with overcommitted resources of their own, as the pod or its annotation says; absent "
            "when neither says anything.",
            frozenset({Component.AGENT, Component.RUNTIME_PROXY}),
            may_be_missing=True,
        ),
        Fact(
            "numaNodes",
            list_of(INT),
            "NUMA zones the pod is allocated to; empty when it is bound to none.",
            _PLACED,
        ),
        Fact("active", BOOL, "Whether the pod is pending or running.", EVERYWHERE, usual=True),
        Fact(
            "known",
            BOOL,
            "Whether the cluster knows the pod; false for one that only the node's metrics report.",
            _MEASURED,
            usual=True,
        ),
        *POD_SPEC,
    ),
)

CONTAINER = Record(
    "container",
    "One container of a pod.",
    (
        Fact("name", STRING, "Name of the container.", EVERYWHERE),
        Fact("image", STRING, "Image of the container.", EVERYWHERE),
        Fact("init", BOOL, "Whether it is an init container that ends before the others begin.", EVERYWHERE),
        Fact("sidecar", BOOL, "Whether it is an init container that keeps running.", EVERYWHERE),
        *each("request", _ALL, "{resource} requested by the container; 0 when it requests none.", EVERYWHERE),
        *each("limit", _ALL, "Limit of {resource} of the container; 0 when it has none.", EVERYWHERE),
        by_name("resources.request", "Requested amounts by resource name.", EVERYWHERE),
        by_name("resources.limit", "Limits by resource name.", EVERYWHERE),
        *CONTAINER_SPEC,
    ),
)
