"""Admission rules as ValidatingAdmissionPolicies with their bindings.

A rule becomes one where an API server comes to the same verdict with the same message about every pod that it would store; where that
is not certain the rule stays with the webhook, and the reason is told. Of several broken rules that refuse, an API server
names one, while the webhook names all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.conditions import TRUE
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.native import NativeObjects, NotNative, Variables, written
from koordpolicy.graph.presence import PRESENCE
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.language.cel.failing import TooManySteps, failures
from koordpolicy.language.cel.ir_walk import rewrite, walk
from koordpolicy.language.cel.types import BOOL, STRING, list_of
from koordpolicy.manager.native.policies import Policy, PolicyKind
from koordpolicy.manager.webhooks.rules import AUDIT, ENFORCE, KIND, WARN, judge_changes_alone
from koordpolicy.manager.webhooks.scope import CHANGES, Expression, common

_ACTIONS: Final = {ENFORCE: "Deny", WARN: "Warn", AUDIT: "Audit"}
_LONGEST_MESSAGE: Final = 5_000
"""Characters of a message that is always the same; of others an API server takes 5 KiB."""
_RESOURCES: Final = ("pods", "pods/resize", "pods/ephemeralcontainers")
_OF_SEVERAL_LINES: Final = {
    "annotations": "annotations",
    "hostPath.path": "paths of the node",
    **{f"securityContext.capabilities.{part}": "capabilities" for part in ("add", "drop")},
}
"""Facts that are any text, with what they are."""
_NOT_GOING: Final = {
    "name": "not-going",
    "expression": "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp)",
}
"""What holds a pod that is being deleted must come off, whatever is wrong with it."""


@dataclass(frozen=True, slots=True)
class Staying:
    """A policy that stays with the webhook: its decision's target, its place (`FILE:LINE:COLUMN`), why."""

    target: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class NativeRules:
    """The rules of a revision that an API server decides, by name, those that it does not, and `idle` ones.

    An idle rule refuses nothing, so that nobody has to be asked about it.
    """

    policies: Mapping[str, Policy]
    staying: tuple[Staying, ...]
    idle: frozenset[str]


def native_rules(graph: RuleGraph, spared: Sequence[Expression]) -> NativeRules:
    """All rules. `spared` are lines of a selector that namespaces have to meet to be asked about at all."""
    policies: dict[str, Policy] = {}
    staying: list[Staying] = []
    idle: set[str] = set()
    for name in graph.subjects(KIND):
        rule = _Rule(graph, name)
        try:
            policy = rule.policy(spared)
        except NotNative as why:
            staying.append(Staying(f"{KIND}/{name}", rule.place, str(why)))
            continue
        if policy is None:
            idle.add(name)
        else:
            policies[name] = policy
    return NativeRules(policies, tuple(staying), frozenset(idle))


class _Rule:
    """One rule on its way."""

    def __init__(self, graph: RuleGraph, name: str) -> None:
        self._graph = graph
        self._name = name
        self._about = graph.about(KIND, name)
        self._variables = Variables()
        self._objects = NativeObjects(graph.catalogue, self._variables)
        self._operations: list[str] = sorted(self._about.value("operations"))

    @property
    def place(self) -> str:
        """Where the rule says what it requires."""
        return next(iter(self._places()), "")

    def _places(self) -> list[str]:
        rules = self._graph.decision(f"{KIND}/{self._name}.require").rules
        return [place(rule.span) for rule in rules]

    def policy(self, spared: Sequence[Expression]) -> Policy | None:
        """The policy, None for a rule that never refuses anything. Raises NotNative."""
        self._check_whole()
        enabled, require = self._expression("enabled"), self._requirement()
        if _is(enabled, False) or _is(require, True):
            return None
        enforcement = self._expression("enforcement")
        if not isinstance(enforcement, ir.Const):
            raise NotNative("how it is enforced depends on the pod")
        expression = written(require, self._objects)
        self._check(require, "its requirement")
        self._check(enabled, "whether it is in use")
        if not _is(enabled, True):
            expression = f"!({written(enabled, self._objects)}) || ({expression})"
        validation = {"expression": expression, **self._message(require), "reason": "Forbidden"}
        spec = {
            "failurePolicy": str(self._about.value("failurePolicy")),
            "matchConstraints": self._constraints(spared),
            "matchConditions": self._conditions(),
            "variables": [{"name": name, "expression": text} for name, text in self._variables.texts.items()],
            "validations": [validation],
        }
        return Policy(
            PolicyKind.VALIDATING,
            self._name,
            {key: value for key, value in spec.items() if value != []},
            (_ACTIONS[str(enforcement.value)],),
            {
                "koordpolicy.io/policy": f"{KIND}/{self._name}",
                "koordpolicy.io/source": ", ".join(self._places()),
            },
        )

    # --- what keeps it back -----------------------------------------------------------------------

    def _check_whole(self) -> None:
        resource = self._about.value("resource")
        if resource != "pods":
            raise NotNative(f"it is about `{resource}`, of which an API server does not know what rules read")
        if any(key.kind == KIND and key.subject == self._name for key in self._graph.overridden):
            raise NotNative(
                "a PolicyException overrides it for a time, and an API server's policies know no time"
            )
        if "DELETE" in self._operations:
            raise NotNative("it is asked about deletions, at which there is no pod but the old one")

    def _check(self, node: ir.Node, what: str, *broken: ir.Node) -> None:
        if self._can_fail(node, *broken):
            raise NotNative(f"{what} can fail, of which the webhook tells the error and its place")

    def _can_fail(self, node: ir.Node, *broken: ir.Node) -> bool:
        """Whether a part can fail where the requirements are `broken`."""
        operation = ir.Var(STRING, "operation")
        among = ir.Call(BOOL, "@in(dyn,list)", (operation, constant(list_of(STRING), self._operations)))
        try:
            return bool(failures(node, PRESENCE, ((among, True), *((one, False) for one in broken))))
        except TooManySteps:
            return True

    # --- its parts --------------------------------------------------------------------------------

    def _expression(self, field: str) -> ir.Node:
        """A decision beside the requirement, as it is where that is not met.

        Where one document alone requires something, its match holds there, and so do its other fields.
        """
        name = f"{KIND}/{self._name}.{field}"
        whole = self._graph.expression(name)
        rules = self._graph.decision(name).rules
        requiring = self._graph.decision(f"{KIND}/{self._name}.require").rules
        alone = len(requiring) == 1 and rules and rules[0].document == requiring[0].document
        matched = alone and rules[0].match.test is not None and rules[0].match == requiring[0].match
        return whole.then if matched and isinstance(whole, ir.Cond) else whole

    def _requirement(self) -> ir.Node:
        """What has to hold, true where no document of the rule applies."""
        return _with_default(self._graph.expression(f"{KIND}/{self._name}.require"), TRUE)

    def _message(self, require: ir.Node) -> dict[str, str]:
        """What the user is told, as the webhook words it: `reason: message`."""
        reason, message = self._expression("reason"), self._expression("message")
        usual = f"the rule `{self._name}` does not hold"
        first, second = _literal(reason, self._name), _literal(message, usual)
        if first is not None and second is not None:
            return {"message": _one_line(f"{first}: {second}")}
        fails = self._can_fail(message, require)
        if fails and first is None:
            raise NotNative("its message can fail, and its reason is another one for other pods")
        front = quote_string(f"{first}: ") if first is not None else f"{self._symbol(reason, require)} + ': '"
        # Where the text fails, an API server falls back to the one that is always the same, as the webhook does.
        return {
            "message": _one_line(f"{first or self._name}: {usual}"),
            "messageExpression": f"{front} + {self._text(message, usual)}",
        }

    def _symbol(self, reason: ir.Node, require: ir.Node) -> str:
        """A reason that depends on the pod. What is no symbol is left out, and the name stands in its place."""
        patterns = {
            node.permitted.pattern
            for node in walk(reason)
            if isinstance(node, ir.Cast) and node.permitted is not None and node.permitted.pattern
        }
        plain = rewrite(_with_default(reason, constant(STRING, self._name)), _unlimited)
        self._check(plain, "its reason", require)
        text = f"string({written(plain, self._objects)})"
        for pattern in sorted(patterns):
            matching = f"r.matches({quote_string(pattern.removesuffix(_END))})"
            text = f"[{text}].map(r, {matching} ? r : {quote_string(self._name)})[0]"
        return text

    def _text(self, message: ir.Node, usual: str) -> str:
        """A message; an empty one gives way to the usual one."""
        self._check_line(message)
        literal = _literal(message, usual)
        if literal is not None:
            return quote_string(literal)
        text = f"string({written(_with_default(message, constant(STRING, usual)), self._objects)})"
        return (
            text if _says_something(message) else f"[{text}].map(m, m == '' ? {quote_string(usual)} : m)[0]"
        )

    def _check_line(self, message: ir.Node) -> None:
        """A message of several lines is none to an API server: texts that may have them keep a rule back."""
        for node in walk(message):
            if isinstance(node, (ir.Field, ir.OptField)) and node.path in _OF_SEVERAL_LINES:
                what = _OF_SEVERAL_LINES[node.path]
                raise NotNative(f"its message shows {what}, which may have several lines or be long")
            if isinstance(node, ir.Const) and isinstance(node.value, str):
                _one_line(node.value)

    def _conditions(self) -> list[dict[str, str]]:
        """Of updates, which ones are judged, as `pods.PodValidation` has it."""
        if "UPDATE" not in self._operations:
            return []
        changes = {"name": "changes-what-policies-speak-of", "expression": CHANGES}
        return [_NOT_GOING, changes] if judge_changes_alone(self._graph) else [_NOT_GOING]

    def _constraints(self, spared: Sequence[Expression]) -> dict[str, Any]:
        alternatives = [one.requirements for one in self._graph.selections(KIND, self._name)]
        namespaces = [*spared, *common(alternatives, "namespaceObject")]
        # An update that takes the label away that the rule asks for is judged as well.
        objects = list(common(alternatives, "pod")) if self._operations == ["CREATE"] else []
        return {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": namespaces} if namespaces else {},
            "objectSelector": {"matchExpressions": objects} if objects else {},
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": self._operations,
                    "resources": list(_RESOURCES),
                    "scope": "*",
                }
            ],
        }


_END: Final = r"(?!\n)"
"""Python's `$` matches before a line break at the end too, RE2's does not."""


def _is(node: ir.Node, value: bool) -> bool:
    return isinstance(node, ir.Const) and node.value is value


def _literal(node: ir.Node, nothing: str) -> str | None:
    """The text that a decision always gives, None for one that depends on the pod."""
    return (str(node.value) if node.value else nothing) if isinstance(node, ir.Const) else None


def _unlimited(node: ir.Node) -> ir.Node:
    return node.operand if isinstance(node, ir.Cast) and node.permitted is not None else node


def _says_something(node: ir.Node) -> bool:
    """Whether a text is certain not to be empty."""
    match node:
        case ir.Const(value=value):
            return bool(value)
        case ir.Call(overload="_+_(string,string)", args=parts):
            return any(map(_says_something, parts))
        case ir.Cond(then=then, otherwise=otherwise):
            return _says_something(then) and _says_something(otherwise)
    return False


def _one_line(message: str) -> str:
    if "\n" in message or len(message) > _LONGEST_MESSAGE:
        raise NotNative("its message has several lines or is longer than an API server takes")
    return message


def _with_default(node: ir.Node, default: ir.Const) -> ir.Node:
    """A decision with another value where no document of it applies."""
    if isinstance(node, ir.Const):
        return default if node.value is None else node
    if isinstance(node, ir.Cond):
        otherwise = _with_default(node.otherwise, default)
        return (
            node if otherwise is node.otherwise else ir.Cond(node.type, node.condition, node.then, otherwise)
        )
    return node
