"""Fields that nothing in a cluster acts on are told of; there are some whenever a kind comes before its component."""

import pytest

from koordpolicy.diagnostics import Severity
from koordpolicy.graph import Layer, compile_policies
from koordpolicy.graph.not_yet import not_yet
from koordpolicy.language.kinds import actors
from koordpolicy.language.kinds.actors import ACTORS, Actor, Part

TEXT = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: MemoryEviction\nmetadata: {name: own}\n"
    "spec:\n  conduct: {by: Eviction}\n"
)


@pytest.mark.parametrize(
    ("actor", "said"),
    [
        (Actor(frozenset(), "herald"), "`MemoryEviction.conduct.by` does nothing until the herald comes"),
        (
            Actor(frozenset({Part.SIMULATOR}), "herald"),
            "`MemoryEviction.conduct.by` acts in simulations alone until the herald comes",
        ),
        (Actor(frozenset({Part.AGENT})), ""),
    ],
)
def test_a_field_without_an_actor_is_told_of(
    actor: Actor, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "ACTORS", {**ACTORS, ("MemoryEviction", "conduct.by"): actor})
    done = compile_policies(Layer("own", {"own.yaml": TEXT}), lambda _name: None)
    found = list(not_yet(done.units))
    assert [one.message for one in found] == [said] * bool(said)
    assert all((one.code, one.severity, one.span.start.line) == ("KP312", Severity.NOTE, 5) for one in found)
