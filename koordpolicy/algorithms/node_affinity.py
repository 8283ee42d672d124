"""Node selectors and affinity, for one node and for all at once.

For all nodes at once, labels arrive as columns: a number for each distinct text, so that an operator
is decided once a text and then looked up. A node without the label is absent from its column.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Column, Mask
from koordpolicy.model.distinct import distinct
from koordpolicy.model.placement import NodeRequirement, NodeTerm, Placement, PreferredTerm

MISMATCH: Final = "node(s) didn't match Pod's node affinity/selector"

NAME_FIELD: Final = "metadata.name"
"""The only field that terms may ask for."""

_LARGEST: Final = 2**63 - 1


class LabelColumns(Protocol):
    """Labels and names of all nodes as numbers of texts."""

    @property
    def count(self) -> int:
        """How many nodes there are."""
        ...

    def label(self, key: str) -> tuple[NDArray[np.int32], Mask | None]:
        """The value of a label on each node, and which nodes lack it (None: none)."""
        ...

    def names(self) -> NDArray[np.int32]:
        """The name of each node."""
        ...

    def code(self, text: str) -> int:
        """The number of a text; -1 when no node has it."""
        ...

    def text(self, code: int) -> str:
        """The text of a number."""
        ...


# --- one node ------------------------------------------------------------------------------------


def matches(placement: Placement, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node has what a pod requires: its selector and one of its terms."""
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    return placement.required is None or any(_holds(term, name, labels) for term in placement.required)


def preference(preferred: Sequence[PreferredTerm], name: str, labels: Mapping[str, str]) -> int:
    """How much a node has of what a pod prefers: the sum of the weights of the terms that hold there."""
    return sum(wish.weight for wish in preferred if _holds(wish.term, name, labels))


def _holds(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(compares(one, labels.get(one.key)) for one in term.labels) and all(
        _field(one)(name) for one in term.fields
    )


def compares(requirement: NodeRequirement, value: str | None) -> bool:
    """Whether a label's value (None: no such label) is as required."""
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _beyond(requirement, value)
    return False


def _beyond(requirement: NodeRequirement, value: str) -> bool:
    if len(requirement.values) != 1:
        return False
    found, limit = _whole(value), _whole(requirement.values[0])
    if found is None or limit is None:
        return False
    return found > limit if requirement.operator == "Gt" else found < limit


def _whole(text: str) -> int | None:
    """The number that Kubernetes reads: an optional sign and digits, 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or len(digits) > 40 or not (digits.isascii() and digits.isdigit()):
        return None
    found = int(text)
    return found if -_LARGEST - 1 <= found <= _LARGEST else None


def _field(requirement: NodeRequirement) -> Callable[[str], bool]:
    if requirement.key != NAME_FIELD or len(requirement.values) != 1:
        return lambda _name: False
    (wanted,) = requirement.values
    match requirement.operator:
        case "In":
            return lambda name: name == wanted
        case "NotIn":
            return lambda name: name != wanted
    return lambda _name: False


# --- all nodes -----------------------------------------------------------------------------------


def matches_all(placement: Placement, nodes: LabelColumns) -> Mask:
    """`matches` for all nodes at once."""
    found = np.ones(nodes.count, np.bool_)
    for key, value in placement.node_selector.items():
        found &= _compares_all(NodeRequirement(key, "In", (value,)), nodes)
    if placement.required is not None:
        some = np.zeros(nodes.count, np.bool_)
        for term in placement.required:
            some |= _holds_all(term, nodes)
        found &= some
    return found


def preference_all(preferred: Sequence[PreferredTerm], nodes: LabelColumns) -> Column:
    """`preference` for all nodes at once."""
    total = np.zeros(nodes.count, np.int64)
    for wish in preferred:
        total += wish.weight * _holds_all(wish.term, nodes)
    return total


def _holds_all(term: NodeTerm, nodes: LabelColumns) -> Mask:
    if not term.labels and not term.fields:
        return np.zeros(nodes.count, np.bool_)
    found = np.ones(nodes.count, np.bool_)
    for one in term.labels:
        found &= _compares_all(one, nodes)
    for one in term.fields:
        found &= _names_all(one, nodes)
    return found


def _compares_all(requirement: NodeRequirement, nodes: LabelColumns) -> Mask:
    codes, absent = nodes.label(requirement.key)
    match requirement.operator:
        case "In" | "NotIn":
            among = np.zeros(nodes.count, np.bool_)
            for value in requirement.values:
                among |= codes == nodes.code(value)
            if requirement.operator == "In":
                return among if absent is None else among & ~absent
            return ~among if absent is None else ~among | absent
        case "Exists":
            return np.ones(nodes.count, np.bool_) if absent is None else ~absent
        case "DoesNotExist":
            return np.zeros(nodes.count, np.bool_) if absent is None else absent.copy()
        case "Gt" | "Lt":
            present = np.ones(nodes.count, np.bool_) if absent is None else ~absent
            among = np.zeros(nodes.count, np.bool_)
            for code in distinct(codes[present]):
                if _beyond(requirement, nodes.text(int(code))):
                    among |= codes == code
            return among & present
    return np.zeros(nodes.count, np.bool_)


def _names_all(requirement: NodeRequirement, nodes: LabelColumns) -> Mask:
    if requirement.key != NAME_FIELD or len(requirement.values) != 1:
        return np.zeros(nodes.count, np.bool_)
    named: Mask = nodes.names() == nodes.code(requirement.values[0])
    match requirement.operator:
        case "In":
            return named
        case "NotIn":
            return ~named
    return np.zeros(nodes.count, np.bool_)
