"""What profiles read of pods and what they change, as far as one can be in another's way."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import translated_resources
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.graph.rules import Requirement
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of, walk
from koordpolicy.manager.webhooks.cluster_profiles import ClusterProfile
from koordpolicy.manager.webhooks.profiles import KIND
from koordpolicy.model.facts.pod_spec import POD_FIELDS
from koordpolicy.model.protocol import EXTENDED_RESOURCE_SPEC, PRIORITY_CLASS, QOS_CLASS, SUB_PRIORITY

PodField = tuple[str, str]
"""Part of a pod: a label, an annotation, a field of the spec; `*` stands for all of them."""
ANY: Final = "*"
EVERYTHING: Final[PodField] = (ANY, ANY)
LABELS: Final = "labels"
ANNOTATIONS: Final = "annotations"
SPEC: Final = "spec"
RESOURCES: Final[PodField] = (SPEC, "resources")
"""What containers and the pod as a whole ask for."""
PRIORITY: Final[PodField] = (SPEC, "priority")
"""The PriorityClass with all that comes of it."""
_QOS_LABEL: Final[PodField] = (LABELS, QOS_CLASS)
_BAND_LABEL: Final[PodField] = (LABELS, PRIORITY_CLASS)
BAND: Final = frozenset({_QOS_LABEL, _BAND_LABEL, PRIORITY, RESOURCES})
"""What a pod's band follows from."""
_OF_FACTS: Final[Mapping[str, Collection[PodField]]] = {
    **dict.fromkeys(
        ("name", "namespace", "uid", "phase", "active", "known", "ownedByDaemonSet", "ownerKind"), ()
    ),
    LABELS: {(LABELS, ANY)},
    ANNOTATIONS: {(ANNOTATIONS, ANY)},
    "schedulerName": {(SPEC, "schedulerName")},
    **{key: {PRIORITY} for key in ("priority", "priorityClassName", "preemptionPolicy")},
    "subPriority": {(LABELS, SUB_PRIORITY)},
    "qosLabel": {_QOS_LABEL},
    "rawBand": {_BAND_LABEL, PRIORITY},
    "qos": {_QOS_LABEL, RESOURCES},
    "band": BAND,
    **{key: {RESOURCES} for key in ("kubernetesQoS", "containers")},
    **{path: {(SPEC, path.partition(".")[0])} for path in POD_FIELDS},
    **{key: {(SPEC, key)} for key in ("tolerations", "volumes", "ephemeralContainers")},
}
_DEVICES: Final = "DeviceSharing"
_AMOUNTS: Final = ("request.", "limit.", "nonzeroRequest.", "resources.")
_OF_SPEC: Final[Mapping[str, PodField]] = {
    **dict.fromkeys(("priority", "priorityClassName", "preemptionPolicy"), PRIORITY),
    **dict.fromkeys(("containers", "initContainers", "resources", "overhead"), RESOURCES),
}
_MAPS: Final = ((LABELS, LABELS), (ANNOTATIONS, ANNOTATIONS), ("labelSuffixes", LABELS))
_COPIES: Final = (("copyLabels", LABELS), ("copyAnnotations", ANNOTATIONS))


@dataclass(frozen=True, slots=True)
class Footprint:
    """One profile. It selects by one of the `alternatives`; `translates` is None where that depends on the pod."""

    name: str
    alternatives: tuple[tuple[Requirement, ...], ...]
    reads: frozenset[PodField]
    writes: frozenset[PodField]
    translates: bool | None

    @property
    def selects_by(self) -> frozenset[PodField]:
        """The labels of pods that its selectors ask for."""
        lines = (line for one in self.alternatives for line in one)
        return frozenset((LABELS, line.key) for line in lines if line.root == "pod")

    def may_meet(self, other: "Footprint") -> bool:
        """Whether both may be about one pod, whatever this one has made of the pod."""
        return any(
            not _disjoint(first, second, self.writes)
            for first in self.alternatives
            for second in other.alternatives
        )


def common_places(some: Iterable[PodField], others: Collection[PodField]) -> list[PodField]:
    """The places of the first that are among the others, in order."""
    return sorted(
        one
        for one in some
        if any(
            ANY in (one[0], other[0]) or (one[0] == other[0] and (one[1] == other[1] or ANY in (one[1], other[1])))
            for other in others
        )
    )  # fmt: skip


def place_text(place: PodField) -> str:
    """A place, for people."""
    part, name = place
    if place == EVERYTHING:
        return "the pod as a whole"
    if name == ANY:
        return f"its {part}"
    return f"`{name}`" if part == SPEC else f"the {part.removesuffix('s')} `{name}`"


def of_policy(graph: RuleGraph, name: str) -> Footprint:
    """A profile of a revision."""
    expressions = list(_expressions(graph, name))
    selections = graph.selections(KIND, name)
    lines = tuple(one.requirements for one in selections)
    reads = {place for one in expressions for place in places_of(one)}
    reads |= {(LABELS, line.key) for one in lines for line in one if line.root == "pod"}
    writes: set[PodField] = set()
    keys = set_keys(graph)
    for field, part in _MAPS:
        found = {(part, key) for key in keys.get((name, field), ())}
        writes |= found
        if field == "labelSuffixes":
            reads |= found
    for field, part in _COPIES:
        for source in keys.get((name, field), ()):
            target = selected_value(graph, name, f"{field}[{source}]")
            reads.add((part, source))
            writes.add((part, str(target.value) if isinstance(target, ir.Const) else ANY))
    for field, place in (
        ("qosClass", _QOS_LABEL),
        ("subPriority", (LABELS, SUB_PRIORITY)),
        ("schedulerName", (SPEC, "schedulerName")),
        ("band", PRIORITY),
        ("priorityClassName", PRIORITY),
    ):
        if graph.decision(f"{KIND}/{name}.{field}").rules:
            writes.add(place)
    writes |= _patched(graph.setting(KIND, name, "patch") or {})
    mode = selected_value(graph, name, "resourceTranslation")
    translates = mode.value != "Never" if isinstance(mode, ir.Const) else None
    writes |= _translated(graph, translates=translates is not False)
    return Footprint(name, lines, frozenset(reads), frozenset(writes), translates)


def selected_value(graph: RuleGraph, name: str, field: str) -> ir.Node:
    """A decision of a profile as it is for the pods that are selected."""
    decision = f"{KIND}/{name}.{field}"
    whole, rules = graph.expression(decision), graph.decision(decision).rules
    selections = graph.selections(KIND, name)
    if len(selections) != 1 or len(rules) != 1 or not isinstance(whole, ir.Cond):
        return whole
    selecting = rules[0].document == selections[0].document and rules[0].match.test is not None
    return whole.then if selecting else whole


def of_object(graph: RuleGraph, profile: ClusterProfile) -> Footprint:
    """A ClusterColocationProfile."""
    spec, reads, writes = profile.spec, set[PodField](), set[PodField]()
    for field, part in (("labels", LABELS), ("annotations", ANNOTATIONS), ("labelSuffixes", LABELS)):
        found = {(part, key) for key in _map(spec, field)}
        writes |= found
        reads |= found if field == "labelSuffixes" else set()
    for field, part in (("labelKeysMapping", LABELS), ("annotationKeysMapping", ANNOTATIONS)):
        reads |= {(part, key) for key in _map(spec, field)}
        writes |= {(part, str(key)) for key in _map(spec, field).values()}
    for field, place in (
        ("qosClass", _QOS_LABEL),
        ("koordinatorPriority", (LABELS, SUB_PRIORITY)),
        ("schedulerName", (SPEC, "schedulerName")),
        ("priorityClassName", PRIORITY),
    ):
        if spec.get(field) is not None:
            writes.add(place)
    writes |= _patched(_map(spec, "patch")) | _translated(graph, translates=profile.translates)
    reads |= {(LABELS, line.key) for line in profile.requirements if line.root == "pod"}
    return Footprint(
        profile.name, (profile.requirements,), frozenset(reads), frozenset(writes), profile.translates
    )


def of_devices(graph: RuleGraph) -> Footprint:
    """What the rules of shared devices ask about pods as they are submitted."""
    read = places_of(*(graph.expression(str(key)) for key in graph.decisions if key.kind == _DEVICES))
    return Footprint(_DEVICES, ((),), read, frozenset(), translates=True)


def places_of(*expressions: ir.Node) -> frozenset[PodField]:
    """What expressions read of the pod that they are asked about."""
    found: set[PodField] = set()
    keyed: set[int] = set()
    nodes = list(walk(*expressions))
    for node in nodes:
        if (entry := _entry(node)) is not None:
            operand, key = entry
            found.add((operand.path, key))
            keyed.add(id(operand))
    for node in nodes:
        if (
            isinstance(node, (ir.Field, ir.OptField, ir.HasField))
            and id(node) not in keyed
            and _is_pod(node.base)
        ):
            for path in node.paths if isinstance(node, ir.HasField) else (node.path,):
                found.update(_of_fact(path))
    if ("pod", "") in facts_of(*expressions):
        found.add(EVERYTHING)
    return frozenset(found)


def _entry(node: ir.Node) -> tuple[ir.Field, str] | None:
    """The map of texts and the key where a node reads one label or annotation of the pod."""
    match node:
        case ir.Select(operand=ir.Field() as texts, field=key):
            pass
        case ir.Index(operand=ir.Field() as texts, index=ir.Const(value=str() as key)):
            pass
        case ir.Call(overload="@in(dyn,map)", args=(ir.Const(value=str() as key), ir.Field() as texts)):
            pass
        case _:
            return None
    return (texts, key) if texts.path in (LABELS, ANNOTATIONS) and _is_pod(texts.base) else None


def _of_fact(path: str) -> Collection[PodField]:
    if path.startswith(_AMOUNTS):
        return {RESOURCES}
    return _OF_FACTS.get(path, {EVERYTHING})


def _is_pod(node: ir.Node) -> bool:
    return isinstance(node, ir.Var) and not node.local and node.name == "pod"


def set_keys(graph: RuleGraph) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The keys that profiles set in their mappings, by profile and field."""
    return graph.once("keys of profiles", lambda: mapping_keys(graph, KIND))


def _decisions(graph: RuleGraph) -> Mapping[str, Sequence[str]]:
    """The decisions of each profile."""
    found: dict[str, list[str]] = defaultdict(list)
    for key in graph.decisions:
        if key.kind == KIND:
            found[key.subject].append(str(key))
    return found


def _expressions(graph: RuleGraph, name: str) -> Iterator[ir.Node]:
    for one in graph.selections(KIND, name):
        if one.test is not None and one.conditional:
            yield one.test
    decisions = graph.once("decisions of profiles", lambda: _decisions(graph))
    yield from map(graph.expression, decisions.get(name, ()))


def _translated(graph: RuleGraph, *, translates: bool) -> set[PodField]:
    if not translates or not translated_resources(graph):
        return set()
    return {RESOURCES, (ANNOTATIONS, EXTENDED_RESOURCE_SPEC)}


def _patched(patch: Mapping[str, Any]) -> set[PodField]:
    found: set[PodField] = set()
    for part, said in patch.items():
        members: Sequence[str] = tuple(said) if isinstance(said, Mapping) else ()
        if part == SPEC and members:
            found |= {_OF_SPEC.get(one, (SPEC, one)) for one in members}
        elif part == "metadata" and members and set(members) <= {LABELS, ANNOTATIONS}:
            for one in members:
                keys = tuple(said[one]) if isinstance(said[one], Mapping) else (ANY,)
                found |= {(one, ANY if key.startswith("$") else key) for key in keys}
        else:
            found.add(EVERYTHING)
    return found


def _map(spec: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = spec.get(field)
    return found if isinstance(found, Mapping) else {}


def _disjoint(
    first: Sequence[Requirement], second: Sequence[Requirement], changed: Collection[PodField]
) -> bool:
    """Whether no pod fulfils both, by labels that nobody changes."""
    return any(
        one.root == other.root
        and one.key == other.key
        and (one.root != "pod" or not common_places([(LABELS, one.key)], changed))
        and (_excludes(one, other) or _excludes(other, one))
        for one in first
        for other in second
    )


def _excludes(one: Requirement, other: Requirement) -> bool:
    match one.operator, other.operator:
        case "In", "In":
            return not set(one.values) & set(other.values)
        case "In", "NotIn":
            return set(one.values) <= set(other.values)
        case (("In" | "Exists"), "DoesNotExist"):
            return True
    return False
