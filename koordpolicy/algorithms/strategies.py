"""How strategies meet: a default, what is said for the cluster over it, what is said for some nodes over both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.model.labels import LabelSelector
from koordpolicy.model.slo_config import (
    BANDWIDTH,
    ConfigDocument,
    Entries,
    FieldForm,
    Fields,
    Items,
    Layout,
    Plain,
    Shape,
    Strategy,
)


def merge(shape: Fields, base: Strategy, over: Strategy) -> dict[str, Any]:
    """`base` with what `over` says: objects field by field, mappings by key, lists by the length of `over`.

    Elements of lists that are objects keep what `base` says at the same index and `over` does not. Empty lists,
    mappings and words say nothing; `totalNetworkBandwidth` says 0 where it does not stand.
    """
    result = dict(base)
    for name, one in shape.fields.items():
        if name in over and _says(one, over[name]):
            result[name] = _merged(one, base.get(name), over[name])
    if BANDWIDTH in shape.fields and BANDWIDTH not in over:
        result[BANDWIDTH] = "0"
    return result


def _says(shape: Shape, value: Any) -> bool:
    match shape:
        case Items() | Entries():
            return bool(value)
        case Plain(form=FieldForm.WORD):
            return bool(value)
    return True


def _merged(shape: Shape, base: Any, over: Any) -> Any:
    match shape:
        case Fields():
            return merge(shape, base or {}, over)
        case Entries():
            return {**(base or {}), **over}
        case Items(element):
            below = base or []
            return [
                _merged(element, below[number] if number < len(below) else None, one)
                for number, one in enumerate(over)
            ]
    return over


@dataclass(frozen=True, slots=True)
class Expanded:
    """A document merged: what holds for the cluster, and in order what holds for the nodes of each entry."""

    cluster: Strategy
    entries: Sequence[tuple[LabelSelector | None, Strategy]] = ()

    def of(self, labels: Mapping[str, str]) -> Strategy:
        """What holds for a node with these labels: the first entry that selects it, else the cluster's."""
        for selector, strategy in self.entries:
            if selector is not None and selector.matches(labels):
                return strategy
        return self.cluster


def expand(layout: Layout, document: ConfigDocument | None, default: Strategy) -> Expanded:
    """Merge a document over the default; None, for a document that is `null`, leaves the default."""
    if document is None:
        return Expanded(default)
    cluster = default if document.cluster is None else merge(layout.strategy, default, document.cluster)
    return Expanded(
        cluster,
        tuple(
            (entry.selector, cluster if entry.empty else merge(layout.strategy, cluster, entry.strategy))
            for entry in document.entries
        ),
    )
