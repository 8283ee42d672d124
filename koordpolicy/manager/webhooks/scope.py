"""Which requests policies can have anything to say about: so narrowly is a webhook asked.

A scope may be wider than what policies touch, never narrower. What it leaves out an API server answers by itself.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import announced_resources
from koordpolicy.graph.native.announced import is_unannounced
from koordpolicy.graph.rules import Requirement
from koordpolicy.kube.admission import Operation
from koordpolicy.manager.webhooks.devices import devices
from koordpolicy.manager.webhooks.pod_objects import SPOKEN_OF
from koordpolicy.manager.webhooks.profiles import KIND as PROFILE
from koordpolicy.manager.webhooks.quotas import keeps_to_nodes
from koordpolicy.manager.webhooks.rules import KIND as RULE
from koordpolicy.manager.webhooks.rules import judge_changes_alone, rules_on
from koordpolicy.model.protocol import EXTENDED_RESOURCE_SPEC
from koordpolicy.model.time import NANOSECONDS

_MOST_VALUES: Final = 200
"""Values of a label that are named one by one; of more, the label alone counts."""
_MOST_KEYS: Final = 50
"""Labels in a condition; with more, it says nothing."""
ANNOUNCEMENT: Final = "PriorityBand.resources.announced"
"""By what name API servers know that they tell agents of resources."""
TIMEOUT: Final = 10
"""Seconds, as Kubernetes has it by default."""

CHANGES: Final = " || ".join(
    (
        'request.operation != "UPDATE"',
        "object.spec != oldObject.spec",
        *(f"object.metadata.?{one} != oldObject.metadata.?{one}" for one in SPOKEN_OF),
    )
)
"""CEL: it is no update, or one that changes something of a pod that policies can speak of."""
_WHOLE: Final[frozenset[Operation]] = frozenset(Operation)
Expression = dict[str, Any]
"""A line of a label selector, as Kubernetes writes it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Requests of these operations, where the namespace and the object have these labels and the condition (CEL) holds.

    An empty condition always holds. `fail_open` is whether what nobody answers within `timeout` seconds is let pass; None
    where policies do not say.
    """

    operations: frozenset[Operation] = _WHOLE
    namespaces: tuple[Expression, ...] = ()
    objects: tuple[Expression, ...] = ()
    condition: str = ""
    fail_open: bool | None = None
    timeout: int = TIMEOUT


def mutated_pods(
    graph: RuleGraph,
    beside: Sequence[Sequence[Requirement]] = (),
    native: frozenset[str] = frozenset(),
) -> Scope | None:
    """Pods that a profile may select, those whose resources agents are told, all where trees of quotas have nodes; None
    for no pods at all.

    `beside` is what profiles ask for that are no policies; a pod that one of them may select is held up while nobody answers.
    `native` are the targets that API servers decide by themselves.
    """
    subjects = [one for one in graph.subjects(PROFILE) if f"{PROFILE}/{one}" not in native]
    alternatives = [one.requirements for subject in subjects for one in graph.selections(PROFILE, subject)]
    alternatives += map(tuple, beside)
    in_trees = keeps_to_nodes(graph)
    if in_trees:
        alternatives.append(())  # any pod may belong to a quota
    announced = announced_resources(graph)
    sorts = devices(graph).resources
    others = (
        *((is_unannounced(graph) if ANNOUNCEMENT in native else _announces(announced),) if announced else ()),
        *((_asks_for(sorted(sorts)),) if sorts else ()),
    )
    if not alternatives and not others:
        return None
    fail_open, timeout = failing(graph, PROFILE, subjects)
    return Scope(
        frozenset({Operation.CREATE}),
        namespaces=() if others else common(alternatives, "namespaceObject"),
        objects=() if others else common(alternatives, "pod"),
        condition=_condition(alternatives, others),
        fail_open=False if beside or in_trees else fail_open,
        timeout=timeout,
    )


def profile_scope(graph: RuleGraph, subjects: Collection[str]) -> Scope | None:
    """Objects that one of these profiles may select by their labels when they are created; None without any profile."""
    if not subjects:
        return None
    alternatives = [one.requirements for subject in subjects for one in graph.selections(PROFILE, subject)]
    fail_open, timeout = failing(graph, PROFILE, subjects)
    return Scope(
        frozenset({Operation.CREATE}),
        objects=common(alternatives, "pod"),
        condition=_condition(alternatives, ()),
        fail_open=fail_open,
        timeout=timeout,
    )


def validated_pods(graph: RuleGraph, native: frozenset[str] = frozenset()) -> Scope | None:
    """Pods that a rule in use may concern, those left out that API servers decide by themselves; None for no pods at all."""
    subjects = [one for one in rules_on(graph, "pods") if f"{RULE}/{one}" not in native]
    operations = frozenset(
        Operation(one) for subject in subjects for one in graph.about(RULE, subject).value("operations")
    )
    if not operations:
        return None
    alternatives = [one.requirements for subject in subjects for one in graph.selections(RULE, subject)]
    if Operation.UPDATE in operations or Operation.DELETE in operations:
        # An update that takes the label away that a rule asks for is judged as well: labels narrow creations alone.
        alternatives = [()]
    changes = Operation.UPDATE in operations and judge_changes_alone(graph)
    fail_open, timeout = failing(graph, RULE, subjects)
    return Scope(
        operations,
        namespaces=common(alternatives, "namespaceObject"),
        objects=common(alternatives, "pod"),
        condition=CHANGES if changes else _condition(alternatives, ()),
        fail_open=fail_open,
        timeout=timeout,
    )


def failing(graph: RuleGraph, kind: str, subjects: Collection[str]) -> tuple[bool | None, int]:
    """Whether all policies of a kind would rather be passed over than hold a request up; the longest of their timeouts."""
    about = [graph.about(kind, subject) for subject in subjects]
    if not about:
        return None, TIMEOUT
    seconds = max(-(-one.value("timeout").ns // NANOSECONDS) for one in about)
    return all(one.value("failurePolicy") == "Ignore" for one in about), int(seconds)


def common(alternatives: Sequence[Sequence[Requirement]], root: str) -> tuple[Expression, ...]:
    """What all alternatives ask of the labels of one object, as a selector: it holds where any of them does."""
    if not alternatives:
        return ()
    each = [_values(one, root) for one in alternatives]
    keys = [key for key in each[0] if all(key in values for values in each)]
    found: list[Expression] = []
    for key in sorted(keys):
        sets = [values[key] for values in each]
        if any(one is None for one in sets) or len(merged := _union(sets)) > _MOST_VALUES:
            found.append({"key": key, "operator": "Exists"})
        else:
            found.append({"key": key, "operator": "In", "values": sorted(merged)})
    return tuple(found)


def _union(sets: Iterable[frozenset[str] | None]) -> frozenset[str]:
    return frozenset(value for one in sets if one is not None for value in one)


def _values(requirements: Sequence[Requirement], root: str) -> Mapping[str, frozenset[str] | None]:
    """The labels that must be there: with which values, or None for any."""
    found: dict[str, frozenset[str] | None] = {}
    for line in requirements:
        if line.root != root or line.operator not in ("In", "Exists"):
            continue
        if line.operator == "Exists":
            found.setdefault(line.key, None)
            continue
        values, known = frozenset(line.values), found.get(line.key)
        found[line.key] = values if known is None else values & known
    return found


def _condition(alternatives: Sequence[Sequence[Requirement]], others: Sequence[str]) -> str:
    """CEL that holds wherever one of the alternatives does, by one label of each, or one of the others."""
    wanted: dict[str, set[str] | None] = defaultdict(set)
    for requirements in alternatives:
        values = _values(requirements, "pod")
        if not values:
            return ""  # this one may be about any pod
        # One that names values tells more than one that is content with any.
        key = min(values, key=lambda one: (values[one] is None, len(values[one] or ()), one))
        said, known = values[key], wanted[key]
        wanted[key] = (
            None if said is None or known is None or len(known | said) > _MOST_VALUES else known | said
        )
    if len(wanted) > _MOST_KEYS:
        return ""
    parts = [*(_labelled(key, values) for key, values in sorted(wanted.items())), *others]
    if not wanted:
        return " || ".join(parts)
    labels = "has(object.metadata.labels)"
    marked = " || ".join(parts[: len(wanted)])
    return " || ".join([f"({labels} && ({marked}))", *others])


def _labelled(key: str, values: Collection[str] | None) -> str:
    there = f"{json_text(key)} in object.metadata.labels"
    if values is None:
        return there
    listed = ", ".join(json_text(one) for one in sorted(values))
    return f"({there} && object.metadata.labels[{json_text(key)}] in [{listed}])"


def _asks_for(resources: Iterable[str]) -> str:
    """CEL: a container asks for one of these resources."""
    names = ", ".join(json_text(one) for one in resources)
    lists = " || ".join(
        f"(has(c.resources.{part}) && c.resources.{part}.exists(r, r in [{names}]))"
        for part in ("requests", "limits")
    )
    return f"object.spec.containers.exists(c, has(c.resources) && ({lists}))"


def _announces(resources: Iterable[str]) -> str:
    """CEL: a container asks for one of these resources, or the annotation about them is there already."""
    annotation = json_text(EXTENDED_RESOURCE_SPEC)
    return (
        f"{_asks_for(resources)}"
        f" || (has(object.metadata.annotations) && {annotation} in object.metadata.annotations)"
    )
