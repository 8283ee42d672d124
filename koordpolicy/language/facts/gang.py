"""Facts of gangs: what their objects say of them, how they stand in the scheduler, and what their pods do."""

from koordpolicy.language.cel.types import BOOL, DURATION, INT, STRING, list_of, map_of
from koordpolicy.language.facts.table import Component, Components, Fact, Record

_SCHEDULER: Components = frozenset({Component.SCHEDULER})

GANG_DECLARATION = Record(
    "gangDeclaration",
    "What an object says of a gang: its PodGroup, or the first of its pods that says enough.",
    (
        Fact("kind", STRING, "`PodGroup` or `Pod`.", _SCHEDULER, usual="PodGroup"),
        Fact("name", STRING, "Name of the gang.", _SCHEDULER),
        Fact("namespace", STRING, "Namespace of the gang.", _SCHEDULER),
        Fact("labels", map_of(STRING, STRING), "Labels of the object.", _SCHEDULER),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the object.", _SCHEDULER),
        Fact(
            "minimum",
            INT,
            "How many of its pods have to run together, as `spec.minMember` of a PodGroup says or a label or annotation of a "
            "pod; absent where that is no number.",
            _SCHEDULER,
            may_be_missing=True,
        ),
        Fact(
            "total",
            INT,
            "How many pods it has in all, as an annotation says; absent where that is no number.",
            _SCHEDULER,
            may_be_missing=True,
        ),
        Fact("mode", STRING, "Its mode, as an annotation says; empty for none.", _SCHEDULER),
        Fact("matchPolicy", STRING, "Its match policy, as an annotation says; empty for none.", _SCHEDULER),
        Fact(
            "waitingTime",
            DURATION,
            "How long its pods wait for each other; absent where that is no time, or none.",
            _SCHEDULER,
            may_be_missing=True,
        ),
        Fact(
            "groups",
            list_of(STRING),
            "The gangs that are placed together with it and it itself, as `NAMESPACE/NAME`; empty for none.",
            _SCHEDULER,
        ),
        Fact(
            "topologyKeys",
            list_of(STRING),
            "Node labels of which all its pods are to have one value, as a PodGroup of Kubernetes' own says "
            "(`spec.schedulingConstraints.topology`).",
            _SCHEDULER,
        ),
        Fact(
            "gathers",
            BOOL,
            "Whether an annotation says how its pods are gathered in the network.",
            _SCHEDULER,
        ),
        Fact(
            "mustGather",
            list_of(STRING),
            "Layers of the network in one place of which all its pods have to be.",
            _SCHEDULER,
        ),
        Fact(
            "multiples",
            map_of(STRING, INT),
            "How many of its pods a place takes at a time, by layer.",
            _SCHEDULER,
        ),
    ),
)

GANG = Record(
    "gang",
    "A gang as the scheduler knows it.",
    (
        Fact("name", STRING, "Name of the gang.", _SCHEDULER),
        Fact("namespace", STRING, "Namespace of the gang.", _SCHEDULER),
        Fact("minimum", INT, "How many of its pods have to run together.", _SCHEDULER, usual=2),
        Fact("total", INT, "How many pods it has in all.", _SCHEDULER, usual=2),
        Fact("mode", STRING, "`Strict` or `NonStrict`.", _SCHEDULER, usual="Strict"),
        Fact(
            "matchPolicy",
            STRING,
            "`once-satisfied`, `only-waiting` or `waiting-and-running`.",
            _SCHEDULER,
            usual="once-satisfied",
        ),
        Fact("pods", INT, "Its pods that are there.", _SCHEDULER),
        Fact(
            "pending", INT, "Those of them that have no node, not even one to wait for others at.", _SCHEDULER
        ),
        Fact("waiting", INT, "Those that have a node and wait for others.", _SCHEDULER),
        Fact("bound", INT, "Those that are bound.", _SCHEDULER),
        Fact(
            "onceSatisfied",
            BOOL,
            "Whether a pod of the gang, or of one that is placed together with it, was ever bound.",
            _SCHEDULER,
        ),
        Fact("rounds", INT, "How often in a row it was tried and did not fit.", _SCHEDULER),
        Fact("priority", INT, "Highest priority of its pods that are there.", _SCHEDULER),
        Fact("unplacedFor", DURATION, "For how long it has been complete, and not been placed.", _SCHEDULER),
    ),
)

POD_GROUP = Record(
    "podGroup",
    "A PodGroup object with what its pods do.",
    (
        Fact("name", STRING, "Name of the object.", _SCHEDULER),
        Fact("namespace", STRING, "Namespace of the object.", _SCHEDULER),
        Fact("phase", STRING, "Its phase; empty for none.", _SCHEDULER),
        Fact("minMember", INT, "How many pods it needs.", _SCHEDULER, usual=2),
        Fact("pods", INT, "Its pods that are there.", _SCHEDULER),
        Fact("bound", INT, "Those that are bound.", _SCHEDULER),
        Fact("running", INT, "Those that run.", _SCHEDULER),
        Fact("succeeded", INT, "Those that have ended well.", _SCHEDULER),
        Fact("failed", INT, "Those that have failed.", _SCHEDULER),
        Fact("age", DURATION, "How long it has been there.", _SCHEDULER),
    ),
)
