"""Changed values are those that the library's own `replace` makes."""

from dataclasses import dataclass, field, replace

import pytest

from koordpolicy.model.changing import changing


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    size: int = 3
    parts: tuple[str, ...] = ()
    aside: dict[str, int] = field(default_factory=dict, compare=False)


def test_the_named_fields_are_others_and_the_rest_is_as_before() -> None:
    before = Thing("a", 5, ("x",), {"k": 1})
    changed = changing(Thing, "parts", "name")
    after = changed(before, ("y", "z"), "b")
    assert after == replace(before, parts=("y", "z"), name="b")
    assert after.aside is before.aside
    assert before == Thing("a", 5, ("x",))


def test_it_needs_fields_that_there_are_and_a_value_for_each() -> None:
    with pytest.raises(ValueError, match="colour"):
        changing(Thing, "colour")
    with pytest.raises(ValueError, match="shorter"):
        changing(Thing, "name", "size")(Thing("a"), "b")
