"""What fields mean, read from the texts below them."""

from koordpolicy.language.kinds.base import Match, PolicySpec
from koordpolicy.language.kinds.meanings import meanings
from koordpolicy.language.kinds.overcommit import OvercommitSpec


def test_the_text_below_a_field_is_its_meaning() -> None:
    assert meanings(Match)["nodes"] == "Selects nodes by their labels."


def test_a_field_without_a_text_has_none() -> None:
    assert "condition" in Match.model_fields
    assert "condition" not in meanings(Match)


def test_fields_are_inherited_with_their_meanings() -> None:
    assert meanings(OvercommitSpec).items() > meanings(PolicySpec).items()


def test_a_type_without_source_has_no_meanings() -> None:
    assert meanings(type("Made", (), {})) == {}
