"""What a pod says of other pods: affinity, anti-affinity, even spread."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator, read_selector
from koordpolicy.model.reading import (
    Json,
    ObjectError,
    integer,
    mapping,
    objects,
    sequence,
    text,
    texts,
    weight,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SPREAD: Final = "topologySpreadConstraints"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST_TERMS: Final = 128
"""Terms and constraints of one pod, in all. More are refused before any is read: each costs something at each attempt."""


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Some pods: those that `selector` matches (None: none) in these namespaces.

    The namespaces are the named ones and those whose labels `namespace_selector` matches (None: no more).
    """

    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Looked up by again and again, and deep.
        object.__setattr__(self, "_hash", hash((self.selector, self.namespaces, self.namespace_selector)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class TopologyTerm:
    """Some pods, and the label by whose value a node counts as near them."""

    pods: PodTerm
    key: str


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A wish to be near some pods; below 0 it is one to be away from them."""

    weight: int
    term: TopologyTerm


@dataclass(frozen=True, slots=True)
class TermSum:
    """Terms of one label `key` with their weights, counted together: each pod as often as all that speak of it weigh."""

    key: str
    terms: tuple[tuple[PodTerm, int], ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.terms))  # as that of a term

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """Pods that `selector` matches shall be spread evenly over the values of the label `key`.

    `hard` ones refuse nodes, the others only score them. `min_domains`: with fewer values the least
    number of pods counts as 0. `honor_affinity` and `honor_taints` say which nodes count.
    """

    key: str
    max_skew: int
    hard: bool
    selector: LabelSelector | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class Neighbours:
    """All of it. `near` and `apart` are required, `wishes` are not. Of the last two, what counts together does so by label."""

    near: tuple[TopologyTerm, ...] = ()
    apart: tuple[TopologyTerm, ...] = ()
    wishes: tuple[WeighedTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    apart_by_key: tuple[TermSum, ...] = field(init=False, repr=False, compare=False)
    wishes_by_key: tuple[TermSum, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "apart_by_key", _sums((term, 1) for term in self.apart))
        object.__setattr__(self, "wishes_by_key", _sums((wish.term, wish.weight) for wish in self.wishes))


def read_neighbours(pod: Json, namespace: str) -> Neighbours:
    """What a pod's JSON says of other pods. Raises ObjectError with the place of what is malformed."""
    spec = mapping(pod, "spec")
    affinity = mapping(spec, "affinity", "spec")
    near = mapping(affinity, "podAffinity", "spec.affinity")
    apart = mapping(affinity, "podAntiAffinity", "spec.affinity")
    if not near and not apart and not spec.get(_SPREAD):
        return ALONE
    _count(spec, near, apart)
    labels = texts(mapping(pod, "metadata"), "labels", "metadata")
    return Neighbours(
        near=_required(near, "spec.affinity.podAffinity", namespace, labels),
        apart=_required(apart, "spec.affinity.podAntiAffinity", namespace, labels),
        wishes=(
            *_wishes(near, "spec.affinity.podAffinity", namespace, labels, 1),
            *_wishes(apart, "spec.affinity.podAntiAffinity", namespace, labels, -1),
        ),
        spread=tuple(_spread(constraint, at, labels) for at, constraint in _few(spec, _SPREAD, "spec")),
    )


def _sums(terms: Iterable[tuple[TopologyTerm, int]]) -> tuple[TermSum, ...]:
    by_key: dict[str, dict[PodTerm, int]] = {}
    for term, times in terms:
        pods = by_key.setdefault(term.key, {})
        pods[term.pods] = pods.get(term.pods, 0) + times
    return tuple(TermSum(key, tuple(pods.items())) for key, pods in by_key.items())


ALONE: Final = Neighbours()


def _required(parent: Json, at: str, namespace: str, labels: Mapping[str, str]) -> tuple[TopologyTerm, ...]:
    return tuple(_term(one, place, namespace, labels) for place, one in _few(parent, _REQUIRED, at))


def _wishes(
    parent: Json, at: str, namespace: str, labels: Mapping[str, str], sign: int
) -> Iterator[WeighedTerm]:
    for place, one in _few(parent, _PREFERRED, at):
        term = _term(mapping(one, "podAffinityTerm", place), place, namespace, labels)
        yield WeighedTerm(sign * weight(one, place), term)


def _term(term: Json, at: str, namespace: str, labels: Mapping[str, str]) -> TopologyTerm:
    named = [one for one in sequence(term, "namespaces", at) if isinstance(one, str)]
    by_labels = term.get("namespaceSelector")
    selector = _selector(term, at)
    selector = _merged(selector, _keys(term, "matchLabelKeys", at), labels, Operator.IN)
    selector = _merged(selector, _keys(term, "mismatchLabelKeys", at), labels, Operator.NOT_IN)
    return TopologyTerm(
        PodTerm(
            selector,
            frozenset(named) if named or by_labels is not None else frozenset({namespace}),
            None
            if by_labels is None
            else read_selector(mapping(term, "namespaceSelector", at), f"{at}.namespaceSelector"),
        ),
        text(term, "topologyKey", at),
    )


def _spread(constraint: Json, at: str, labels: Mapping[str, str]) -> SpreadConstraint:
    hard = (text(constraint, "whenUnsatisfiable", at) or "DoNotSchedule") == "DoNotSchedule"
    return SpreadConstraint(
        key=text(constraint, "topologyKey", at),
        max_skew=integer(constraint, "maxSkew", at) or 1,
        hard=hard,
        selector=_merged(
            _selector(constraint, at), _keys(constraint, "matchLabelKeys", at), labels, Operator.IN
        ),
        min_domains=(integer(constraint, "minDomains", at) or 1) if hard else 1,
        honor_affinity=text(constraint, "nodeAffinityPolicy", at) != "Ignore",
        honor_taints=text(constraint, "nodeTaintsPolicy", at) == "Honor",
    )


def _selector(parent: Json, at: str) -> LabelSelector | None:
    if parent.get("labelSelector") is None:
        return None
    return read_selector(mapping(parent, "labelSelector", at), f"{at}.labelSelector")


def _keys(parent: Json, key: str, at: str) -> Sequence[str]:
    return [one for one in sequence(parent, key, at) if isinstance(one, str)]


def _merged(
    selector: LabelSelector | None, keys: Sequence[str], labels: Mapping[str, str], operator: Operator
) -> LabelSelector | None:
    """A selector with the pod's own values of some labels. API servers may have added them already."""
    if selector is None:
        return None
    more = [
        LabelRequirement(key, operator, frozenset({labels[key]}))
        for key in keys
        if key in labels
    ]  # fmt: skip
    new = tuple(one for one in more if one not in selector.requirements)
    return LabelSelector((*selector.requirements, *new)) if new else selector


def _few(parent: Json, key: str, at: str) -> Iterator[tuple[str, Json]]:
    for index, one in enumerate(objects(parent, key, at)):
        yield f"{at}.{key}[{index}]", one


def _count(spec: Json, near: Json, apart: Json) -> None:
    terms = sum(
        len(sequence(parent, key, "spec.affinity"))
        for parent in (near, apart)
        for key in (_REQUIRED, _PREFERRED)
    )
    constraints = len(sequence(spec, _SPREAD, "spec"))
    if terms + constraints > _MOST_TERMS:
        raise ObjectError(
            f"spec: {terms:,} terms about other pods and {constraints:,} spread constraints, more than"
            f" {_MOST_TERMS:,} in all"
        )
