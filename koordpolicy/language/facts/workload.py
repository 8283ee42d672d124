"""Facts of workloads whose requests are recommended."""

from koordpolicy.language.cel.types import DURATION, STRING, map_of
from koordpolicy.language.facts.table import Component, Components, Fact, Record

_MANAGER: Components = frozenset({Component.MANAGER})

WORKLOAD = Record(
    "workload",
    "A workload that a Recommendation object speaks of, with one of its containers.",
    (
        Fact("recommendation", STRING, "Name of the Recommendation object.", _MANAGER),
        Fact("namespace", STRING, "Namespace of the object, and of the workload.", _MANAGER),
        Fact("labels", map_of(STRING, STRING), "Labels of the object.", _MANAGER),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the object.", _MANAGER),
        Fact(
            "kind",
            STRING,
            "Kind of the workload, such as `Deployment`; empty where the object selects pods by labels.",
            _MANAGER,
        ),
        Fact(
            "name", STRING, "Name of the workload; empty where the object selects pods by labels.", _MANAGER
        ),
        Fact(
            "container",
            STRING,
            "Name of the container; empty where the workload is asked about as a whole, or a pod of it.",
            _MANAGER,
        ),
        Fact(
            "history",
            DURATION,
            "For how long the use of the container is known; absent where no container is asked about.",
            _MANAGER,
            may_be_missing=True,
        ),
    ),
)
