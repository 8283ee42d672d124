"""Gangs whose nodes have one value of some labels: which domains there are for one, and what each offers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.domains import IN_NONE, Domains
from koordpolicy.algorithms.gathering import Gathered, Gathering, Offers, Scattered, gather, key_columns
from koordpolicy.algorithms.network_tree import NetworkTree

_NAMED: Final = 5
"""Domains that are named in a reason; all are in the offers."""


@dataclass(frozen=True, slots=True)
class DomainOffer:
    """How many of a gang's pods a domain of so many nodes takes, and how many of these nodes refuse a pod for which reason."""

    name: str
    nodes: int
    takes: int
    refused: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SharedDomains:
    """The domains of some labels beside a tree of nodes: `of_leaves` is the domain of each leaf, `open` are those that a gang may
    go to, by their places: all, or the one that pods of it are in already. `why_none` says why none is.
    """

    domains: Domains
    of_leaves: Column
    open: Column
    why_none: str = ""

    @classmethod
    def of(cls, domains: Domains, tree: NetworkTree, beside: Sequence[int]) -> "SharedDomains":
        """Those for a gang of which pods are on the nodes of these rows."""
        of_leaves = domains.of_rows[tree.rows]
        if not len(domains.names):
            return cls(domains, of_leaves, np.empty(0, np.int64), f"no node has {domains.text}")
        held = sorted(set(domains.of_rows[list(beside)].tolist())) if len(beside) else []
        if not held:
            return cls(domains, of_leaves, np.arange(len(domains.names)))
        if len(held) == 1 and held[0] != IN_NONE:
            return cls(domains, of_leaves, np.array(held))
        named = ", ".join("no domain" if one == IN_NONE else domains.names[one] for one in held[: _NAMED + 1])
        why = f"its pods that have a node are not in one domain of {domains.text} themselves, but in {named}"
        return cls(domains, of_leaves, np.empty(0, np.int64), why)

    def rows(self, name: str) -> Column:
        """The rows of the nodes of a domain."""
        return np.flatnonzero(self.domains.of_rows == self.domains.names.index(name))

    def takes(self, slots: Column, wanted: int) -> int:
        """How many of so many pods the domain takes that takes most; `slots` are those of leaves."""
        room = self.domains.sums(self.of_leaves, np.minimum(slots, wanted))[self.open]
        return int(room.max(initial=0))

    def offers(self, slots: Column, wanted: int) -> list[DomainOffer]:
        """What each domain takes of so many pods, the one first that takes most."""
        room = self.domains.sums(self.of_leaves, np.minimum(slots, wanted)).tolist()
        nodes = self.domains.sums(self.domains.of_rows, np.ones(len(self.domains.of_rows), np.int64)).tolist()
        found = [
            DomainOffer(self.domains.names[at], nodes[at], min(room[at], wanted)) for at in self.open.tolist()
        ]
        return sorted(found, key=lambda one: (-one.takes, one.name))


def gather_shared(
    tree: NetworkTree, offers: Offers, wanted: int, how: Gathering, shared: SharedDomains | None
) -> Gathered | Scattered:
    """Where so many pods go together as `gather` says, within one domain where they share any: the first that takes all, by the
    keys of candidates.
    """
    if shared is None:
        return gather(tree, offers, wanted, how)
    slots = np.minimum(offers.slots, wanted)
    sums = shared.domains.sums
    room = sums(shared.of_leaves, slots)
    enough = shared.open[room[shared.open] >= wanted]
    columns = key_columns(
        how.candidates, sums(shared.of_leaves, offers.existing), room, sums(shared.of_leaves, offers.scores)
    )
    closest = Scattered(how.layer)
    for domain in enough[np.lexsort([enough, *(column[enough] for column in columns[::-1])])].tolist():
        inside = Offers(np.where(shared.of_leaves == domain, slots, 0), offers.existing, offers.scores)
        found = gather(tree, inside, wanted, how)
        if isinstance(found, Gathered):
            return found
        if not closest.roots or found.most > closest.most:
            closest = found
    return closest


def why_scattered(
    shared: SharedDomains, domains: Sequence[DomainOffer], wanted: int, within: str | None
) -> str:
    """Why no domain takes so many pods; `within` says why none does that has room for them, None where none has."""
    text = shared.domains.text
    if within is not None:
        return f"no domain of {text} takes {wanted} pods: {within}"
    most = max((one.takes for one in domains), default=0)
    named = ", ".join(f"{one.name} takes {one.takes}" for one in domains[:_NAMED])
    more = len(domains) - _NAMED
    named += f", {more} more take no more than that" if more > 0 else ""
    return f"{wanted - most} of {wanted} pods find no node in one domain of {text}: {named}"
