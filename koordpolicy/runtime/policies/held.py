"""A revision that a rollout holds back, and how far it lets it go: as text in the cluster, and as who follows it hears of it."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.model.labels import read_selector, selector_json
from koordpolicy.model.reading import Json, ObjectError, embedded_object, integer, mapping, objects, text
from koordpolicy.runtime.policies.gating import NodePart, RolloutReach
from koordpolicy.source.revision import Revision

_AT: Final = "held"


@dataclass(frozen=True, slots=True)
class HeldRevision:
    """Which revision that is: the digest of the published content, the commit that it is a part of, and its reach."""

    digest: str
    commit: str
    reach: RolloutReach

    def is_of(self, revision: Revision) -> bool:
        """Whether it speaks of a revision."""
        return (self.digest, self.commit) == (revision.digest, revision.commit)


def held_text(held: HeldRevision) -> str:
    """The text of it: the same for the same value."""
    reach = held.reach
    said = {
        "digest": held.digest,
        "commit": held.commit,
        "step": reach.step,
        "sample": reach.sample,
        "keep": reach.keep,
        "ahead": [_part_json(part) for part in reach.parts],
    }
    return json.dumps(said, sort_keys=True)


def read_held(written: str) -> HeldRevision:
    """The inverse. Raises ObjectError."""
    said = embedded_object(written, _AT)
    digest = text(said, "digest", _AT)
    if len(digest) != 64:
        raise ObjectError(f"{_AT}.digest has to be a SHA-256 in hexadecimal")
    reach = RolloutReach(
        text(said, "step", _AT),
        tuple(_part(one) for one in objects(said, "ahead", _AT)),
        _percent(said, "sample") or 0.0,
        integer(said, "keep", _AT) or 0,
    )
    return HeldRevision(digest, text(said, "commit", _AT), reach)


def _part_json(part: NodePart) -> dict[str, Any]:
    return ({} if part.nodes is None else {"nodes": selector_json(part.nodes)}) | (
        {} if part.share is None else {"share": part.share}
    )


def _part(said: Json) -> NodePart:
    at = f"{_AT}.ahead"
    nodes = read_selector(mapping(said, "nodes", at), f"{at}.nodes") if "nodes" in said else None
    return NodePart(nodes, _percent(said, "share"))


def _percent(said: Json, key: str) -> float | None:
    """A share in percent points; None where there is none."""
    value = said.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 100.0:
        raise ObjectError(f"{_AT}.{key}: expected a number from 0 to 100")
    return float(value)


class HeldReach:
    """What is held now, for the gate that lets it decide: who hears of it says it here."""

    def __init__(self) -> None:
        self.held: HeldRevision | None = None
        self._changed = asyncio.Event()

    def say(self, held: HeldRevision | None) -> None:
        """Tell whoever waits, where it is something else than before."""
        if held != self.held:
            self.held = held
            self._changed.set()

    async def changed(self) -> None:
        """Return when something else is held than when this returned last. One task waits at a time."""
        await self._changed.wait()
        self._changed.clear()
