"""Facts of elastic quotas, of those around one in its tree, and of bindings."""

from koordpolicy.language.cel.types import BOOL, DOUBLE, INT, STRING, list_of, map_of, record
from koordpolicy.language.facts.table import Component, Components, Fact, Record, by_name

_WEBHOOK: Components = frozenset({Component.WEBHOOK})
_QUOTAS: Components = frozenset({Component.WEBHOOK, Component.SCHEDULER})
_MANAGER: Components = frozenset({Component.MANAGER})

QUOTA = Record(
    "quota",
    "One elastic quota.",
    (
        Fact("name", STRING, "Name of the quota, which is unique in the cluster.", _QUOTAS),
        Fact("namespace", STRING, "Namespace of the object.", _QUOTAS),
        Fact("labels", map_of(STRING, STRING), "Labels of the quota.", _QUOTAS),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the quota.", _QUOTAS),
        Fact(
            "known",
            BOOL,
            "Whether there is such a quota; of one that there is not only the name says anything.",
            _QUOTAS,
            usual=True,
        ),
        Fact(
            "parent", STRING, "Name of the quota above it; the root's where the object names none.", _QUOTAS
        ),
        Fact("tree", STRING, "Id of its tree; empty for none.", _QUOTAS),
        Fact("isParent", BOOL, "Whether other quotas may stand below it.", _QUOTAS),
        Fact("isRoot", BOOL, "Whether it is the root of a tree.", _QUOTAS),
        Fact(
            "lends",
            BOOL,
            "Whether others may use what it does not ask for of its min, as its label says.",
            _QUOTAS,
            usual=True,
        ),
        Fact("forced", BOOL, "Whether its label lets changes through that sums forbid.", _QUOTAS),
        Fact("namespaces", list_of(STRING), "Namespaces that are bound to it.", _QUOTAS),
        Fact(
            "foreignNamespaces",
            list_of(STRING),
            "Those of its namespaces that are bound to another quota.",
            _WEBHOOK,
        ),
        Fact(
            "strictKeys", list_of(STRING), "Resources of which it may not offer less than is used.", _QUOTAS
        ),
        by_name(
            "max", "The most that its pods may request, by resource name; as written, below 0 too.", _QUOTAS
        ),
        by_name("min", "What it is guaranteed, by resource name; as written, below 0 too.", _QUOTAS),
        by_name(
            "sharedWeight",
            "Weights by which spare resources are shared, as its annotation says; absent without one.",
            _QUOTAS,
            may_be_missing=True,
        ),
        by_name(
            "total",
            "What there is in the tree that it is the root of, by resource name, as its annotation says; absent without one.",
            _QUOTAS,
            may_be_missing=True,
        ),
        by_name("guaranteed", "What the scheduler guarantees it, by resource name.", _QUOTAS),
        by_name("used", "What its pods use, by resource name.", _QUOTAS),
        by_name("childRequest", "What pods admitted to it request, by resource name.", _QUOTAS),
        by_name(
            "admission",
            "Limit of what may be admitted, by resource name, as its annotation says; absent without one.",
            _QUOTAS,
            may_be_missing=True,
        ),
        Fact("pods", list_of(STRING), "Names of the first ten pods that bear its label.", _WEBHOOK),
        Fact(
            "bound",
            BOOL,
            "Whether pods belong to it: by its label, by a namespace of its name, or by a namespace bound to it.",
            _WEBHOOK,
        ),
        Fact(
            "guaranteeFits",
            BOOL,
            "Whether its guarantee, raised to its min and carried upwards through its tree, stays within what a quota "
            "above it is guaranteed.",
            _WEBHOOK,
            usual=True,
        ),
    ),
)

QUOTA_GROUP = Record(
    "quotaGroup",
    "Quotas that stand together in a tree, with sums over them.",
    (
        Fact("count", INT, "How many they are.", _WEBHOOK),
        Fact("quotas", list_of(record("quota")), "The quotas, by name.", _WEBHOOK),
        by_name("min", "Sum of what they are guaranteed by their specs, by resource name.", _WEBHOOK),
    ),
)

BINDING = Record(
    "binding",
    "The wish of a scheduler to place a pod on a node.",
    (
        Fact("node", STRING, "Name of the node.", _WEBHOOK),
        Fact(
            "podKnown", BOOL, "Whether the pod could be read; else its facts are empty.", _WEBHOOK, usual=True
        ),
    ),
)

NAMESPACE_QUOTAS = Record(
    "namespaceQuotas",
    "The quotas that the namespace of a pod leads to.",
    (
        Fact("named", STRING, "Quota in the namespace that has its name; empty for none.", _QUOTAS),
        Fact("bound", STRING, "First quota that the namespace is bound to; empty for none.", _QUOTAS),
    ),
)

QUOTA_PROFILE = Record(
    "quotaProfile",
    "An ElasticQuotaProfile with what its nodes offer.",
    (
        Fact("name", STRING, "Name of the profile.", _MANAGER),
        Fact("namespace", STRING, "Namespace of the profile.", _MANAGER),
        Fact("labels", map_of(STRING, STRING), "Labels of the profile.", _MANAGER),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the profile.", _MANAGER),
        Fact("tree", STRING, "Id of its tree, as its label says; empty for none.", _MANAGER),
        Fact(
            "hash",
            STRING,
            "A number made of its namespace and name, by which trees are called that have no id of their own.",
            _MANAGER,
        ),
        Fact(
            "ratio",
            DOUBLE,
            "Share of its nodes' resources, as its spec says; absent where that is no number.",
            _MANAGER,
            may_be_missing=True,
        ),
        Fact(
            "resourceKeys",
            list_of(STRING),
            "Resources of its quota, as its annotation says; absent where it says none.",
            _MANAGER,
            may_be_missing=True,
        ),
        by_name(
            "total",
            "What its nodes offer, times the ratio, by resource name; absent where that is not known yet.",
            _MANAGER,
            may_be_missing=True,
        ),
        by_name(
            "unschedulable",
            "The part of it that no pod can be placed on, by resource name; absent where that is not known yet.",
            _MANAGER,
            may_be_missing=True,
        ),
    ),
)
