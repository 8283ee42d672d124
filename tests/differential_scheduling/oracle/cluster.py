"""The objects of a cluster by kind and name, and small cycles about them."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from tests.differential_scheduling.case import Object, key_of, name_of

_SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
}  # fmt: skip


def quantity(text: Any) -> Fraction:
    """A quantity as a number."""
    written = str(text)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if written.endswith(suffix):
            return Fraction(written[: -len(suffix)]) * _SUFFIXES[suffix]
    return Fraction(written)


def amount(resource: str, text: Any) -> int:
    """What the scheduler counts: thousandths of CPUs, else whole units; both rounded up."""
    exact = quantity(text) * (1000 if resource == "cpu" else 1)
    return -((-exact.numerator) // exact.denominator)


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


class Cluster:
    """Objects by kind. `without` gives the same cluster less some pods, which are `gone` then.

    `as_built` asks for what kube-scheduler does where that is known not to be what is documented:

    - A selector of namespaces in a pod's own terms is also asked about a namespace without any labels, whatever
      namespace it is; so one that only says what must not be there selects all namespaces.
    - A pod that is being deleted does not count for topology spread; when it is supposed to be gone to make
      room, it is subtracted nevertheless.
    """

    def __init__(self, objects: Iterable[Object], *, as_built: bool = False) -> None:
        self.as_built = as_built
        self.gone: list[Object] = []
        self.by_kind: dict[str, dict[tuple[str, str], Object]] = {}
        for obj in objects:
            self.by_kind.setdefault(obj["kind"], {})[key_of(obj)] = obj
        self.nodes = {name_of(obj): obj for obj in self.by_kind.get("Node", {}).values()}
        self.pods = [
            pod
            for pod in self.by_kind.get("Pod", {}).values()
            if pod["spec"].get("nodeName")
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def without(self, gone: frozenset[tuple[str, str]]) -> "Cluster":
        other = object.__new__(Cluster)
        other.by_kind, other.nodes, other.as_built = self.by_kind, self.nodes, self.as_built
        other.gone = [pod for pod in self.pods if key_of(pod) in gone]
        other.pods = [pod for pod in self.pods if key_of(pod) not in gone]
        return other

    def pods_on(self, node: str) -> list[Object]:
        return [pod for pod in self.pods if pod["spec"]["nodeName"] == node]

    def placed(self) -> Iterator[tuple[Object, Object]]:
        """The pods that are on nodes that there are, with these."""
        for pod in self.pods:
            node = self.nodes.get(pod["spec"]["nodeName"])
            if node is not None:
                yield pod, node

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        return self.by_kind.get(kind, {}).get((namespace, name))

    def all(self, kind: str) -> Iterable[Object]:
        return self.by_kind.get(kind, {}).values()

    def namespace_labels(self, namespace: str) -> Mapping[str, str] | None:
        found = self.get("Namespace", namespace)
        return None if found is None else labels_of(found)


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A label selector: None matches nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        requirement_holds(one, labels) for one in selector.get("matchExpressions") or ()
    )


def requirement_holds(one: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """One expression of a label selector or of a node selector."""
    key, values = one["key"], one.get("values") or []
    present = key in labels
    match one["operator"]:
        case "In":
            return present and labels[key] in values
        case "NotIn":
            return not present or labels[key] not in values
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "Gt" | "Lt" as operator:
            if not present or len(values) != 1:
                return False
            mine, theirs = whole(labels[key]), whole(values[0])
            if mine is None or theirs is None:
                return False
            return mine > theirs if operator == "Gt" else mine < theirs
    raise AssertionError(one)


def whole(text: str) -> int | None:
    """A whole number of 64 bits as Go reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def term_matches(term: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """One term of a node selector; one that says nothing matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    by_name = {"metadata.name": name_of(node)}
    return all(requirement_holds(one, labels_of(node)) for one in expressions) and all(
        requirement_holds(one, by_name) for one in fields
    )


def node_selector_matches(selector: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    return any(term_matches(term, node) for term in selector.get("nodeSelectorTerms") or ())
