"""The Kubernetes port: one protocol, and the clusters that speak it.

`port.py` is what every component talks to; `api/` is a client of a real API server, `memory/` a whole cluster
inside the process, used by the demo, the simulator and the tests. Over any of them, `informer.py` keeps a
local copy of one resource, `events.py` tells people what happened, `leases.py` says who may lead.
Objects are JSON dicts as the API sends them and are never changed in place: take `thaw(object)`, change
that, and write it back. A Kubernetes client library is imported only here; what a pod *means* is
`model/`'s business, and no decision is made here.
"""

from koordpolicy.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Rejected,
    TooManyRequests,
    Unreachable,
)
from koordpolicy.kube.frozen import freeze, thaw
from koordpolicy.kube.port import (
    ApplyPatch,
    Cluster,
    EventType,
    JsonPatch,
    MergePatch,
    Object,
    ObjectList,
    Patch,
    Preconditions,
    Propagation,
    StrategicPatch,
    WatchEvent,
)
from koordpolicy.kube.resources import Resource

__all__ = [
    "AlreadyExists",
    "ApplyPatch",
    "Cluster",
    "Conflict",
    "EventType",
    "Forbidden",
    "Gone",
    "Invalid",
    "JsonPatch",
    "KubeError",
    "MergePatch",
    "NotFound",
    "Object",
    "ObjectList",
    "Patch",
    "Preconditions",
    "Propagation",
    "Rejected",
    "Resource",
    "StrategicPatch",
    "TooManyRequests",
    "Unreachable",
    "WatchEvent",
    "freeze",
    "thaw",
]
