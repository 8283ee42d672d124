"""No field is accepted and ignored: the table of actors has every field, and components ask what it says they do."""

import pytest

from koordpolicy.language.kinds import KINDS
from koordpolicy.language.kinds.actors import ACTORS, LIVE, Part
from koordpolicy.language.manual.fields import fields_of

FIELDS = {
    (kind.name, entry.path.replace(".<key>", "<key>"))
    for kind in KINDS.values()
    for entry in fields_of(kind.spec)
}


def test_every_field_of_every_kind_has_an_actor() -> None:
    assert set(ACTORS) == FIELDS


@pytest.mark.parametrize("name", sorted(ACTORS), ids=".".join)
def test_a_field_that_nothing_in_a_cluster_acts_on_is_awaited(name: tuple[str, str]) -> None:
    actor = ACTORS[name]
    assert bool(actor.parts & LIVE) != bool(actor.awaited)
    assert Part.COMPILER not in actor.parts or len(actor.parts) == 1
