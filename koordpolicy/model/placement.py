"""Where a pod may go, as its spec says: selector, node affinity, tolerations, gates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from koordpolicy.model.node import Taint
from koordpolicy.model.reading import (
    NO_TEXT,
    Json,
    ObjectError,
    mapping,
    objects,
    optional_mapping,
    sequence,
    text,
    texts,
    weight,
)

_AFFINITY: Final = "spec.affinity.nodeAffinity"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST_TERMS: Final = 1000

MOST_LABEL_KEYS: Final = 64
"""Labels of nodes that one pod may ask for: each is looked up for all nodes, and kept at hand for other pods."""
"""Terms, requirements and values that are looked at, each; the API server permits fewer in practice."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration. An empty key stands for every taint, an empty effect for every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with it may be where the taint is."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return self.key in ("", taint.key)
        return self.operator == "Equal" and self.key == taint.key and self.value == taint.value


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """One condition on a label, or on the name of the node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Conditions that must all hold. A term without any holds nowhere."""

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A wish with its weight."""

    weight: int
    term: NodeTerm


@dataclass(frozen=True, slots=True)
class Placement:
    """What a pod's spec says of nodes. `required` is None where it requires no affinity."""

    node_selector: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    gates: tuple[str, ...] = ()
    among: frozenset[str] = frozenset()
    """The only nodes that somebody else leaves it to choose from, by its scheduling hint; none for all."""

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of nodes that it asks for."""
        terms = (*(self.required or ()), *(wish.term for wish in self.preferred))
        return frozenset(self.node_selector).union(
            requirement.key for term in terms for requirement in term.labels
        )


ANYWHERE: Final = Placement()


def read_placement(pod: Json) -> Placement:
    """The placement of a pod's JSON. Raises ObjectError with the place of what is malformed."""
    spec = mapping(pod, "spec")
    if all(spec.get(part) is None for part in _SELDOM_SAID):
        # Most pods say nothing but what they tolerate, and many tolerate the same.
        try:
            return _tolerant(
                tuple([tuple(map(one.get, _TOLERATION)) for one in objects(spec, "tolerations", "spec")])
            )
        except (ObjectError, TypeError):
            pass  # malformed; reading one thing after the other says what comes first
    affinity = mapping(mapping(spec, "affinity", "spec"), "nodeAffinity", "spec.affinity")
    required = optional_mapping(affinity, _REQUIRED, _AFFINITY)
    placement = Placement(
        node_selector=texts(spec, "nodeSelector", "spec"),
        required=None if required is None else read_node_terms(required),
        preferred=tuple(
            PreferredTerm(weight(wish, _AFFINITY), read_node_term(mapping(wish, "preference", _AFFINITY)))
            for wish in _few(affinity, _PREFERRED)
        ),
        tolerations=tuple(read_toleration(one) for one in objects(spec, "tolerations", "spec")),
        gates=tuple(text(gate, "name", "spec.schedulingGates") for gate in objects(spec, "schedulingGates")),
    )
    if len(placement.label_keys) > MOST_LABEL_KEYS:
        raise ObjectError(f"spec: its node selectors name more than {MOST_LABEL_KEYS} labels")
    return placement


def read_node_terms(selector: Json) -> tuple[NodeTerm, ...]:
    """The terms of a node selector, one of which must hold. Raises ObjectError."""
    return tuple(read_node_term(term) for term in _few(selector, "nodeSelectorTerms"))


_SELDOM_SAID: Final = ("affinity", "nodeSelector", "schedulingGates")
_TOLERATION: Final = ("key", "operator", "value", "effect")


@lru_cache(maxsize=1024)
def _tolerant(tolerations: tuple[tuple[object, ...], ...]) -> Placement:
    """The placement of pods with these tolerations, given field by field, and nothing else."""
    return Placement(
        tolerations=tuple(read_toleration(dict(zip(_TOLERATION, one, strict=True))) for one in tolerations)
    )


def read_toleration(one: Json) -> Toleration:
    """A toleration from its JSON. Raises ObjectError."""
    at = "spec.tolerations"
    return Toleration(
        text(one, "key", at),
        text(one, "operator", at) or "Equal",
        text(one, "value", at),
        text(one, "effect", at),
    )


def read_node_term(term: Json) -> NodeTerm:
    """A term of a node selector from its JSON. Raises ObjectError."""
    return NodeTerm(
        tuple(_requirement(one) for one in _few(term, "matchExpressions")),
        tuple(_requirement(one) for one in _few(term, "matchFields")),
    )


def _requirement(one: Json) -> NodeRequirement:
    values = []
    for value in sequence(one, "values", _AFFINITY):
        if not isinstance(value, str):
            raise ObjectError(f"{_AFFINITY}: a value of `{text(one, 'key', _AFFINITY)}` is not text")
        values.append(value)
    return NodeRequirement(text(one, "key", _AFFINITY), text(one, "operator", _AFFINITY), tuple(values))


def _few(parent: Json, key: str) -> list[Json]:
    found = list(objects(parent, key, _AFFINITY))
    if len(found) > _MOST_TERMS:
        raise ObjectError(f"{_AFFINITY}.{key}: more than {_MOST_TERMS} entries")
    return found
