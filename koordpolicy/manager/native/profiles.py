"""Co-location profiles as MutatingAdmissionPolicies with their bindings.

A profile becomes one where an API server makes of every pod what the webhook would, whether the webhook is asked about the pod
afterwards or not. API servers run such policies before all webhooks and in no order among themselves, and each sees what
others have changed already; the webhook asks everything about the pod as it is submitted, and applies profiles in the order of their
names. So a profile stays with the webhook where another one that may be about the same pod reads what it changes,
or changes what its resources' names depend on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.profile import ALWAYS
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import announced_resources
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.native import NativeObjects, NotNative, Variables, written
from koordpolicy.graph.presence import PRESENCE
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.language.cel.failing import TooManySteps, failures
from koordpolicy.language.cel.types import BOOL, STRING
from koordpolicy.manager.native.footprints import (
    ANNOTATIONS,
    LABELS,
    common_places,
    of_devices,
    of_object,
    of_policy,
    place_text,
    places_of,
    selected_value,
    set_keys,
)
from koordpolicy.manager.native.neighbours import Neighbours
from koordpolicy.manager.native.patches import NOTHING, chosen, joined, made, merged, put, removed
from koordpolicy.manager.native.policies import Policy, PolicyKind
from koordpolicy.manager.native.rules import Staying
from koordpolicy.manager.native.translation import announcement, retraction, translation
from koordpolicy.manager.webhooks.cluster_profiles import ClusterProfile
from koordpolicy.manager.webhooks.profiles import KIND
from koordpolicy.manager.webhooks.scope import Expression, common
from koordpolicy.model.protocol import QOS_CLASS, SUB_PRIORITY

_ANNOUNCER: Final = "announced-resources"
"""The name of the policy that tells agents of resources; where a profile has it, the webhook does."""
_LABELS: Final = ("metadata", LABELS)
_ANNOTATIONS: Final = ("metadata", ANNOTATIONS)
_CREATED: Final = ir.Call(BOOL, "_==_", (ir.Var(STRING, "operation"), constant(STRING, "CREATE")))


@dataclass(frozen=True, slots=True)
class NativeProfiles:
    """As `NativeRules`, of profiles; an idle one selects nothing.

    `announcer` tells agents what containers have of the resources of bands, whoever has put it there; None where nobody needs it.
    """

    policies: Mapping[str, Policy]
    staying: tuple[Staying, ...]
    idle: frozenset[str]
    announcer: Policy | None


def native_profiles(
    graph: RuleGraph, spared: Sequence[Expression], objects: Sequence[ClusterProfile] = ()
) -> NativeProfiles:
    """All profiles. `spared` are lines of a selector that namespaces have to meet to be asked about at all.

    `objects` are ClusterColocationProfiles whose place no policy takes.
    """
    lowered: dict[str, Policy] = {}
    staying: dict[str, Staying] = {}
    idle: set[str] = set()
    for name in graph.subjects(KIND):
        profile = _Profile(graph, name)
        try:
            policy = profile.policy(spared)
        except NotNative as why:
            staying[name] = Staying(f"{KIND}/{name}", profile.place, str(why))
            continue
        if policy is None:
            idle.add(name)
        else:
            lowered[name] = policy
    policies: dict[str, Policy] = {}
    beside = Neighbours(
        [of_policy(graph, name) for name in graph.subjects(KIND) if name not in idle],
        [of_devices(graph), *(of_object(graph, one) for one in objects)],
    )
    for name, policy in lowered.items():
        try:
            beside.check(name, policies.keys())
        except NotNative as why:
            staying[name] = Staying(f"{KIND}/{name}", _Profile(graph, name).place, str(why))
        else:
            policies[name] = policy
    told = policies and _ANNOUNCER not in graph.subjects(KIND) and announced_resources(graph)
    return NativeProfiles(
        policies,
        tuple(staying[name] for name in sorted(staying)),
        frozenset(idle),
        _announcer(graph, spared) if told else None,
    )


class _Profile:
    """One profile on its way."""

    def __init__(self, graph: RuleGraph, name: str) -> None:
        self._graph = graph
        self._name = name
        self._about = graph.about(KIND, name)
        self._selections = graph.selections(KIND, name)
        self._variables = Variables()
        self._objects = NativeObjects(graph.catalogue, self._variables, stored=False)
        self._keys = set_keys(graph)
        self._print = of_policy(graph, name)

    @property
    def place(self) -> str:
        """Where the profile stands."""
        return next(iter(self._places()), "")

    def _places(self) -> list[str]:
        units = {unit.id: unit for unit in self._graph.units}
        return [place(units[one.document].document.span) for one in self._selections if one.document in units]

    def policy(self, spared: Sequence[Expression]) -> Policy | None:
        """The policy, None for a profile that is not in use. Raises NotNative."""
        graph, target = self._graph, f"{KIND}/{self._name}"
        if any(key.kind == KIND and key.subject == self._name for key in graph.overridden):
            raise NotNative(
                "a PolicyException overrides it for a time, and an API server's policies know no time"
            )
        enabled = self._field("enabled")
        if isinstance(enabled, ir.Const) and enabled.value is False:
            return None
        if self._constant("probability", "to which share of pods it is applied") != ALWAYS:
            raise NotNative(
                "it is applied to a share of the pods, and an API server's policies draw no numbers"
            )
        mode = self._constant("resourceTranslation", "whether resources get other names")
        guard = self._guard(enabled)
        named = self._priority_class()
        translated = NOTHING if mode == "Never" else translation(graph, self._objects, self._variables)
        announced, before = NOTHING, NOTHING
        if translated != NOTHING:
            announced, before = announcement(graph), retraction(graph)
        effects = joined((*self._effects(named), before))
        patches = [one for one in (effects, translated, announced) if one != NOTHING]
        if not patches:
            raise NotNative("all that it does is to keep resources by their names, whatever others say")
        if guard:
            selected = self._variables.use("selected", lambda: guard)
            patches = [f"{selected} ? ({one}) : {NOTHING}" for one in patches]
        spec: dict[str, Any] = {
            "failurePolicy": str(self._about.value("failurePolicy")),
            "matchConstraints": self._constraints(spared),
            "variables": [{"name": name, "expression": text} for name, text in self._variables.texts.items()],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": one}} for one in patches],
            "reinvocationPolicy": "Never",
            **({"paramKind": _PRIORITY_CLASSES} if named else {}),
        }
        return Policy(
            PolicyKind.MUTATING,
            self._name,
            {key: value for key, value in spec.items() if value != []},
            (),
            {"koordpolicy.io/policy": target, "koordpolicy.io/source": ", ".join(self._places())},
            parameter=named,
        )

    # --- whom it is about -------------------------------------------------------------------------

    def _constraints(self, spared: Sequence[Expression]) -> dict[str, Any]:
        lines = [one.requirements for one in self._selections]
        if len(lines) == 1:
            namespaces = [*spared, *_lines(lines[0], "namespaceObject")]
            return _pods(namespaces, _lines(lines[0], "pod"))
        return _pods([*spared, *common(lines, "namespaceObject")], common(lines, "pod"))

    def _guard(self, enabled: ir.Node) -> str:
        """What holds of its pods beside what selectors say, empty for nothing."""
        if len(self._selections) == 1 and not self._selections[0].conditional:
            asked: list[ir.Node] = []
        else:
            asked = [one.test for one in self._selections if one.test is not None]
            if len(asked) < len(self._selections):
                asked = []
        for one in (*asked, enabled):
            self._check(one, "whom it selects")
        texts = [" || ".join(f"({written(one, self._objects)})" for one in asked)] if asked else []
        if not (isinstance(enabled, ir.Const) and enabled.value is True):
            texts.append(written(enabled, self._objects))
        return " && ".join(f"({one})" for one in texts)

    # --- what it does -----------------------------------------------------------------------------

    def _effects(self, named: str) -> Iterable[str]:
        labels = {key: self._field(f"labels[{key}]") for key in self._of("labels")}
        annotations = {key: self._field(f"annotations[{key}]") for key in self._of("annotations")}
        copied = {
            part: {key: self._target(f"{field}[{key}]") for key in self._of(field)}
            for part, field in ((_LABELS, "copyLabels"), (_ANNOTATIONS, "copyAnnotations"))
        }
        if self._of("labelSuffixes"):
            raise NotNative("it appends to labels, which the webhook would do once more")
        qos, sub_priority = self._field("qosClass"), self._field("subPriority")
        patch = self._graph.setting(KIND, self._name, "patch") or {}
        if patch and len(self._selections) > 1:
            raise NotNative("it has a patch, and several documents say whom it selects")
        if labels or copied[_LABELS] or not (_is_nothing(qos) and _is_nothing(sub_priority)):
            yield made(_LABELS)
        yield from (self._set((*_LABELS, key), node) for key, node in labels.items())
        if annotations or copied[_ANNOTATIONS]:
            yield made(_ANNOTATIONS)
        yield from (self._set((*_ANNOTATIONS, key), node) for key, node in annotations.items())
        for part, own in ((_LABELS, labels), (_ANNOTATIONS, annotations)):
            for source, target in copied[part].items():
                if source in own or common_places([(part[1], source)], self._print.writes):
                    raise NotNative(f"it copies `{source}`, which it sets itself")
                texts = self._objects.fact("pod", part[1])
                yield put((*part, target), f"{texts}[?{quote_string(source)}].orValue('')")
        yield self._set(("spec", "schedulerName"), self._field("schedulerName"), empty=False)
        yield self._set((*_LABELS, QOS_CLASS), qos, empty=False)
        if named:
            yield put(("spec", "priorityClassName"), quote_string(named))
            yield put(("spec", "priority"), "params.value")
            policy = ("spec", "preemptionPolicy")
            yield (
                f"(params.?preemptionPolicy.orValue('') != '' ? {put(policy, 'params.preemptionPolicy')}"
                f" : {removed(policy)})"
            )
        yield self._set((*_LABELS, SUB_PRIORITY), sub_priority, text="string({})")
        yield from merged(patch)

    def _set(self, at: tuple[str, ...], node: ir.Node, *, empty: bool = True, text: str = "{}") -> str:
        self._check(node, f"the value of `{at[-1]}`")
        return chosen(
            node,
            lambda one: written(one, self._objects),
            lambda value: put(at, text.format(value)),
            empty=empty,
        )

    def _priority_class(self) -> str:
        """The PriorityClass that it gives, empty for none."""
        name = self._constant("priorityClassName", "its PriorityClass")
        if name is not None:
            return str(name)
        band = self._constant("band", "its band")
        if band is None:
            return ""
        if band not in self._graph.classes.bands:
            raise NotNative(f"there is no priority band `{band}`")
        return str(self._graph.classes.bands[str(band)].get("priorityClass.name", band))

    # --- its parts --------------------------------------------------------------------------------

    def _of(self, field: str) -> tuple[str, ...]:
        return self._keys.get((self._name, field), ())

    def _target(self, field: str) -> str:
        node = self._field(field)
        if not isinstance(node, ir.Const) or not node.value:
            raise NotNative("where it copies to depends on the pod")
        return str(node.value)

    def _constant(self, field: str, what: str) -> object:
        node = self._field(field)
        if not isinstance(node, ir.Const):
            raise NotNative(f"{what} depends on the pod")
        return node.value

    def _field(self, field: str) -> ir.Node:
        """A decision as it is for the pods that are selected."""
        return selected_value(self._graph, self._name, field)

    def _check(self, node: ir.Node, what: str) -> None:
        """Raises NotNative for what can fail, and what another answer comes of once the profile is applied."""
        try:
            fails = bool(failures(node, PRESENCE, ((_CREATED, True),)))
        except TooManySteps:
            fails = True
        if fails:
            raise NotNative(f"{what} can fail, of which the webhook tells the error and its place")
        if spoiled := common_places(places_of(node), self._print.writes):
            raise NotNative(f"{what} depends on {place_text(spoiled[0])}, which it changes itself")


_PRIORITY_CLASSES: Final = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}


def _announcer(graph: RuleGraph, spared: Sequence[Expression]) -> Policy:
    """What tells agents of resources that pods have asked for themselves."""
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": _pods(spared, ()),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": announcement(graph)}}],
        "reinvocationPolicy": "Never",
    }
    return Policy(PolicyKind.MUTATING, _ANNOUNCER, spec, (), {"koordpolicy.io/policy": "PriorityBand"})


def _pods(namespaces: Sequence[Expression], pods: Sequence[Expression]) -> dict[str, Any]:
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": list(namespaces)} if namespaces else {},
        "objectSelector": {"matchExpressions": list(pods)} if pods else {},
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "*",
            }
        ],
    }


def _lines(requirements: Sequence[Any], root: str) -> list[Expression]:
    """The label selectors of one document, as Kubernetes writes them."""
    return [
        {"key": one.key, "operator": one.operator, **({"values": list(one.values)} if one.values else {})}
        for one in requirements
        if one.root == root
    ]


def _is_nothing(node: ir.Node) -> bool:
    return isinstance(node, ir.Const) and not node.value and node.value != 0
