"""Facts of pods and namespaces as CEL over the objects that an API server hands to its policies."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.graph.native.amounts import amount_of, amounts_of, total
from koordpolicy.graph.native.fields import ELEMENTS, POD_LISTS, field_text, field_there, volume_source
from koordpolicy.graph.native.kubernetes_qos import computed_qos
from koordpolicy.graph.native.reasons import NotNative
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.model.facts.pod_spec import POD_FIELDS
from koordpolicy.model.facts.record import REQUESTABLE
from koordpolicy.model.protocol import (
    CPU,
    DAEMON_SET,
    DEPRECATED_RESOURCES,
    HUGEPAGES_PREFIX,
    MEMORY,
    PHASE_PENDING,
    PHASE_RUNNING,
    PRIORITY_CLASS,
    QOS_BEST_EFFORT,
    QOS_BURSTABLE,
    QOS_CLASS,
    QOS_GUARANTEED,
    RESTART_ALWAYS,
)

PODS: Final[Mapping[str, str]] = MappingProxyType({"pod": "object", "oldPod": "oldObject"})
"""Roots that are pods, by what an API server calls them."""
NAMESPACE: Final = "namespaceObject"
CONTAINER: Final = "container"
PLAIN: Final[Mapping[str, str]] = MappingProxyType(
    {"operation": "request.operation", "user": "request.userInfo.?username.orValue('')"}
)
"""Roots that are no records."""
AMOUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {"request": "requests", "limit": "limits", "nonzeroRequest": "requests"}
)
"""Facts of amounts, with the field of a container that they come from."""
_UNSTATED: Final[Mapping[str, str]] = MappingProxyType({CPU: "100m", MEMORY: "209715200"})
_NAMED: Final = "resources."


class Variables:
    """Expressions that are computed once for an object, by name; those that others use come first."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def use(self, name: str, make: Callable[[], str]) -> str:
        """How an expression refers to one, which is made when it is first asked for."""
        if name not in self.texts:
            text = make()
            self.texts[name] = text
        return f"variables.{name}"


class NativeObjects:
    """Writes facts. Raises NotNative for those that the objects do not tell with certainty.

    `stored` is whether the objects are about to be stored, all changes made; before that their status is what the user wrote.
    """

    def __init__(self, catalogue: Catalogue, variables: Variables, *, stored: bool = True) -> None:
        self._catalogue = catalogue
        self._variables = variables
        self._stored = stored
        self._plain: Mapping[str, Callable[[str], str]] = {
            "name": lambda root: f"{PODS[root]}.metadata.?name.orValue('')",
            "namespace": lambda root: f"{PODS[root]}.metadata.?namespace.orValue('default')",
            "uid": lambda root: f"{PODS[root]}.metadata.?uid.orValue('')",
            "labels": lambda root: self._texts(root, "labels"),
            "annotations": lambda root: self._texts(root, "annotations"),
            "phase": self._phase,
            "schedulerName": lambda root: f"{PODS[root]}.spec.?schedulerName.orValue('')",
            "priority": lambda root: f"int({PODS[root]}.spec.priority)",
            "priorityClassName": lambda root: f"{PODS[root]}.spec.?priorityClassName.orValue('')",
            "preemptionPolicy": lambda root: f"{PODS[root]}.spec.?preemptionPolicy.orValue('')",
            "kubernetesQoS": self._kubernetes_qos,
            "qos": self._qos,
            "qosLabel": self._qos_label,
            "band": self._band,
            "rawBand": self._raw_band,
            "ownedByDaemonSet": lambda root: (
                f"{_owners(PODS[root])}.exists(o, o.kind == {quote_string(DAEMON_SET)})"
            ),
            "ownerKind": lambda root: (
                f"{_owners(PODS[root])}.filter(o, o.?controller.orValue(false)).map(o, o.kind)[?0].orValue('')"
            ),
            "containers": lambda root: self._variables.use(
                f"{root}_containers",
                lambda: (
                    f"{PODS[root]}.spec.?initContainers.orValue([]) + {PODS[root]}.spec.?containers.orValue([])"
                ),
            ),
            "active": lambda root: f"({self._phase(root)} in ['{PHASE_PENDING}', '{PHASE_RUNNING}'])",
            "known": lambda root: "true",
        }

    def fact(self, root: str, path: str) -> str:
        """A fact of a root that is a record."""
        if root == NAMESPACE:
            return self._namespace_fact(path)
        if root not in PODS:
            raise NotNative(f"it reads `{root}.{path}`, which the object does not say")
        where, _, step = path.partition(".")
        if where in AMOUNTS and step in REQUESTABLE:
            return self.amount(root, where, REQUESTABLE[step])
        field = POD_FIELDS.get(path)
        if field is not None:
            return field_text(f"{PODS[root]}.spec", path, field)
        if path in POD_LISTS:
            return f"{PODS[root]}.spec.?{path}.orValue([])"
        make = self._plain.get(path)
        if make is None:
            raise NotNative(f"it reads `{root}.{path}`, which the object does not say")
        return make(root)

    def present(self, root: str, path: str) -> str:
        """Whether a fact of a root is there."""
        if root == NAMESPACE:
            return "true"
        if root not in PODS:
            raise NotNative(f"it reads `{root}.{path}`, which the object does not say")
        field, spec = POD_FIELDS.get(path), f"{PODS[root]}.spec"
        there = f"has({spec}.priority)" if path == "priority" else ""
        if field is not None and field.unset is None:
            there = field_there(spec, path)
        if root == "pod":
            return there or "true"
        return f"({PODS[root]} != null && {there})" if there else f"({PODS[root]} != null)"

    def _namespace_fact(self, path: str) -> str:
        if path == "name":
            return "namespaceObject.metadata.name"
        if path in ("labels", "annotations"):
            return self._variables.use(
                f"namespace_{path}", lambda: f"namespaceObject.metadata.?{path}.orValue({{}})"
            )
        raise NotNative(f"it reads `{NAMESPACE}.{path}`, which the object does not say")

    # --- classes and bands ------------------------------------------------------------------------

    def _texts(self, root: str, field: str) -> str:
        return self._variables.use(f"{root}_{field}", lambda: f"{PODS[root]}.metadata.?{field}.orValue({{}})")

    def _phase(self, root: str) -> str:
        return f"{PODS[root]}.?status.?phase.orValue('{PHASE_PENDING}')"

    def _kubernetes_qos(self, root: str) -> str:
        if self._stored:
            return f"{PODS[root]}.status.qosClass"  # which every pod then has
        use = self._variables.use
        return use(f"{root}_kubernetes_qos", lambda: computed_qos(root, PODS[root], use))

    def _qos_label(self, root: str) -> str:
        label = f"{self._texts(root, 'labels')}[?{quote_string(QOS_CLASS)}].orValue('')"
        known = ", ".join(quote_string(name) for name in self._catalogue.classes if name)
        return self._variables.use(
            f"{root}_qos_label", lambda: f"[{label}].filter(l, l in [{known}])[?0].orValue('')"
        )

    def _qos(self, root: str) -> str:
        derived = {
            name: self._catalogue.effective_qos(None, name)
            for name in (QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT)
        }
        label, kubernetes = self._qos_label(root), self._kubernetes_qos(root)
        return self._variables.use(
            f"{root}_qos",
            lambda: f"{label} != '' ? {label} : {_table(derived)}[?{kubernetes}].orValue('')",
        )

    def _raw_band(self, root: str) -> str:
        key, labels, pod = quote_string(PRIORITY_CLASS), self._texts(root, "labels"), PODS[root]
        bands = self._catalogue.bands.values()
        by_class = _table({one.class_name: self._catalogue.band_of_class(one.class_name) for one in bands})
        by_priority = "".join(
            f"int({pod}.spec.priority) >= {one.low} && int({pod}.spec.priority) <= {one.high}"
            f" ? {quote_string(one.name)} : "
            for one in bands
        )
        return self._variables.use(
            f"{root}_raw_band",
            lambda: (
                f"{key} in {labels} ? {by_class}[?{labels}[{key}]].orValue('') : !has({pod}.spec.priority) ? '' :"
                f" {by_priority}{quote_string(self._catalogue.fallback_band)}"
            ),
        )

    def _band(self, root: str) -> str:
        defaults = _table({name: one.default_band for name, one in self._catalogue.classes.items()})
        raw, qos = self._raw_band(root), self._qos(root)
        return self._variables.use(
            f"{root}_band", lambda: f"{raw} != '' ? {raw} : {defaults}[?{qos}].orValue('')"
        )

    # --- amounts ----------------------------------------------------------------------------------

    def amount(self, root: str, where: str, resource: str) -> str:
        """What a pod asks for of a resource as a whole, 0 where it does not name it."""
        variables, name = self._variables, f"{root}_{where}_{_word(resource)}"
        pod = PODS[root]

        def of(containers: str) -> str:
            stated = _stated(f"c.?resources.?{AMOUNTS[where]}", resource)
            unstated = _UNSTATED.get(resource, "0") if where == "nonzeroRequest" else "0"
            found = f"{stated}.orValue({quote_string(unstated)})"
            return amounts_of(f"{pod}.spec.?{containers}.orValue([]).map(c, {found})", resource)

        def whole() -> str:
            inits = variables.use(f"{name}_init", lambda: of("initContainers"))
            stays = variables.use(
                f"{root}_sidecar",
                lambda: (
                    f"{pod}.spec.?initContainers.orValue([])"
                    f".map(c, c.?restartPolicy.orValue('') == {quote_string(RESTART_ALWAYS)})"
                ),
            )
            running = variables.use(
                f"{name}_running",
                lambda: total(f"{of('containers')} + {inits}.transformList(i, a, {stays}[i], a)"),
            )
            starting = variables.use(
                f"{name}_starting",
                lambda: (
                    f"{inits}.transformList(i, a, !{stays}[i],"
                    f" {total(f'[a] + {inits}.transformList(j, b, j < i && {stays}[j], b)')})"
                ),
            )
            most = f"([{running}] + {starting}).max()"
            if resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX):
                declared = _stated(f"{pod}.spec.?resources.?{AMOUNTS[where]}", resource)
                most = f"{declared}.hasValue() ? {amount_of(f'{declared}.value()', resource)} : {most}"
            most = variables.use(f"{name}_beside_overhead", lambda: most)
            over = amount_of(f"{_stated(f'{pod}.spec.?overhead', resource)}.orValue('0')", resource)
            if where == "limit":
                return f"{most} > 0 ? {total(f'[{most}, {over}]')} : {most}"
            return total(f"[{most}, {over}]")

        return variables.use(name, whole)

    def container_amount(self, container: str, where: str, resource: str) -> str:
        """The same of one container."""
        found = f"{_stated(f'{container}.?resources.?{AMOUNTS[where]}', resource)}.orValue('0')"
        return amount_of(found, resource)

    def element_fact(self, record: str, element: str, path: str) -> str:
        """A fact of a record in a list of a pod, which the text stands for."""
        field = ELEMENTS[record].get(path)
        if field is not None:
            return field_text(element, path, field)
        if (record, path) == ("volume", "source"):
            return volume_source(element)
        if record == CONTAINER:
            return self._container_fact(element, path)
        raise NotNative(f"it reads `{path}` of a `{record}`, which the object does not say")

    def element_present(self, record: str, element: str, path: str) -> str:
        """Whether such a fact is there."""
        field = ELEMENTS[record].get(path)
        return field_there(element, path) if field is not None and field.unset is None else "true"

    def _container_fact(self, container: str, path: str) -> str:
        where, _, step = path.partition(".")
        if where in AMOUNTS and step in REQUESTABLE:
            return self.container_amount(container, where, REQUESTABLE[step])
        if path in ("name", "image"):
            return f"{container}.?{path}.orValue('')"
        if path == "ports":
            return f"{container}.?ports.orValue([])"
        raise NotNative(f"it reads `{path}` of containers, which one of them alone does not say")


def container_states(container: str, where: str, resource: str) -> str:
    """Whether a container names a resource."""
    return f"({_stated(f'{container}.?resources.?{AMOUNTS[where]}', resource)}).hasValue()"


def named_amounts(path: str) -> str | None:
    """Of the fact of a map of amounts (`resources.request`), which amounts these are; None for any other fact."""
    where = path.removeprefix(_NAMED)
    return where if path.startswith(_NAMED) and where in AMOUNTS else None


def _stated(quantities: str, resource: str) -> str:
    """The quantity of a resource in an optional list of them, as an optional, by its current name or else an old one."""
    if resource in DEPRECATED_RESOURCES:
        raise NotNative(f"it asks for `{resource}`, the old name of `{DEPRECATED_RESOURCES[resource]}`")
    names = [resource, *(old for old, new in DEPRECATED_RESOURCES.items() if new == resource)]
    first, *others = (f"{quantities}[?{quote_string(name)}]" for name in names)
    return first + "".join(f".or({one})" for one in others)


def _owners(pod: str) -> str:
    return f"{pod}.metadata.?ownerReferences.orValue([])"


def _table(entries: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote_string(key)}: {quote_string(one)}" for key, one in entries.items()) + "}"


def _word(resource: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in resource)
