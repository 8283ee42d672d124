"""Lists that a filter picks, row by row, from a list that is one for all rows.

The filter runs as a loop over the list; each pass gives a mask of the rows that keep the element. How
many a row keeps, and which is its first, follow from the masks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.held import held
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.lower.columns.symbols import (
    COUNTED,
    DTYPES,
    INT,
    STRING,
    EntrySpace,
    NoColumnForm,
    PickedVec,
    ThingVec,
    Vec,
    kind_of,
)

Array = NDArray[Any]
Mask = NDArray[np.bool_]


def begin(emitter: Emitter, node: ir.Comprehension, source: ThingVec) -> tuple[str, str]:
    """The variables of the list of elements walked, and of the list of their masks."""
    values = f"() if {source.errors} else {source.values}" if source.errors else source.values
    return emitter.writer.let(
        "i", f"items({values}, meter, {emitter.price_of_pass(node)})"
    ), emitter.writer.let("k", "[]")


def picked(node: ir.Comprehension, space: EntrySpace, walked: str, masks: str, failed: str) -> PickedVec:
    """The symbol of what a filter picked."""
    range_type = node.range.type
    kind = kind_of(range_type.params[0]) if range_type.params else None
    if kind is None:
        raise NoColumnForm(node, f"elements of {range_type} have no column")
    return PickedVec(space, kind, walked, masks, failed)


def size(emitter: Emitter, source: PickedVec) -> Vec:
    """How many elements each row keeps."""
    value = emitter.once("v", f"count_picked({source.masks}, {source.space.count})")
    return Vec(INT, value, source.space, source.errors, lambda: ("0", f"len({source.masks})"))


def element(emitter: Emitter, node: ir.Index, source: PickedVec, index: Vec) -> Vec:
    """The element that each row has at a position that is one for all rows."""
    if index.kind != INT or index.space is not None or node.optional:
        raise NoColumnForm(node, "an index that differs from row to row")
    space = source.space
    value, failed = emitter.writer.name("v"), emitter.writer.name("e")
    errors = emitter.join(source.errors, emitter.errors_in(index, space), space)
    kind = INT if source.held and source.kind in COUNTED else source.kind
    emitter.writer.line(
        f"{value}, {failed} = pick_at({source.walked}, {source.masks}, {index.values}, {space.count}, "
        f"{kind!r}, strings, {errors})"
    )
    # No bounds: what is done with such a number is checked for overflow, which is rare and cheap enough.
    return Vec(source.kind, value, space, failed, None, few=True)


# --- what the generated code calls -----------------------------------------------------------------


def count_picked(masks: Sequence[Mask], count: int) -> Array:
    """How many of the masks hold in each row."""
    if len(masks) > 255:
        total: Array = np.add.reduce(masks, axis=0, dtype=np.int64)
        return total
    small = np.zeros(count, np.uint8)
    for mask in masks:
        small += mask.view(np.uint8)
    return small.astype(np.int64)


def pick_at(
    items: Sequence[Any], masks: Sequence[Mask], index: int, count: int, kind: str, strings: CallStrings,
    errors: Mask | None,
) -> tuple[Array, Mask | None]:  # fmt: skip
    """In each row the item whose mask is the one at `index` among those that hold; an error without."""
    values = np.zeros(count, DTYPES[kind])
    missing = np.ones(count, np.bool_)
    passed = np.zeros(count, np.int64)
    for item, mask in zip(items, masks, strict=True):
        hit = mask & (passed == index)
        # Numbers that stand for durations and points in time may be there already.
        values[hit] = item if kind != STRING and type(item) is int else held(item, kind, strings)
        missing &= ~hit
        passed += mask
    if not missing.any():
        return values, errors
    return values, missing if errors is None else missing | errors
