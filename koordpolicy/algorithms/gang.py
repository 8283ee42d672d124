"""Gangs: pods that are placed together or not at all, with those who wait, and the rounds in which they are tried.

    book = GangBook(rules)
    book.set_gang(...), book.set_pod(...), book.bound(...), book.remove_pod(...)     # as events come
    book.may_enter(pod)          # before the queue
    book.begin(pod)              # a pod leaves the queue: a round of its gang group begins, or goes on
    book.permit(pod)             # it has a node: it waits there, or all go
    book.failed(pod)             # it has none: who gives back the node that he waits at
    book.unreserved(pod)         # it does not get to its node after all
    book.next()                  # who is to be tried next while a round is open; or it ends

Nothing here knows nodes, time or policy: `rules` answer what policy decides. Gangs that are placed together form a gang group,
which shares a record. One round is open at a time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from koordpolicy.algorithms.gathering import GangNetwork
from koordpolicy.model.gang import GangKey
from koordpolicy.model.pod import PodKey


@dataclass(frozen=True, slots=True)
class GangParameters:
    """How a gang is placed. `wait` is in nanoseconds, `group` the gangs that are placed together, itself among them, in order;
    `takes_along` says that those of other namespaces go with it even where they do not name it; `network` how it is gathered in the
    network of the cluster, None where it is not.
    """

    minimum: int
    group: tuple[str, ...]
    total: int = 0
    mode: str = "Strict"
    match_policy: str = "once-satisfied"
    wait: int = 0
    network: GangNetwork | None = None
    takes_along: bool = False


@dataclass(slots=True)
class GangGroup:
    """What gangs share that are placed together. `representative` is the pod that waits in the queue for all of them, `members`
    are the pods that are bound together; `rounds` is how often in a row they did not fit. `found_lacking` is the place of the gang
    that kept them from being tried when that was asked last: most likely it still does. `forgotten` says that no book has it.
    """

    gangs: tuple[str, ...]
    once_satisfied: bool = False
    representative: PodKey | None = None
    members: frozenset[PodKey] = frozenset()
    rounds: int = 0
    complete_since: int | None = None
    found_lacking: int = field(default=0, compare=False)
    forgotten: bool = field(default=False, compare=False)


@dataclass(slots=True, eq=False)
class Gang:
    """A gang with its pods. `parameters` is None as long as nobody has said enough of it.

    `pods` are all that are there; each of them is `pending`, `waiting` on a node, `allowed` to go (and still among those who wait),
    or `bound`.
    """

    id: str
    parameters: GangParameters | None = None
    pods: dict[PodKey, None] = field(default_factory=dict)
    pending: dict[PodKey, None] = field(default_factory=dict)
    waiting: dict[PodKey, None] = field(default_factory=dict)
    allowed: set[PodKey] = field(default_factory=set)
    bound: dict[PodKey, None] = field(default_factory=dict)
    shared: GangGroup | None = field(default=None, repr=False)
    """Its gang group, which is long to find by its name where many gangs are placed together."""


@dataclass(slots=True)
class Round:
    """One attempt to place a gang group: whose pods were `attempted`, and why it has `failed` (empty: it has not)."""

    gang: str
    group: tuple[str, ...]
    attempted: set[PodKey]
    failed: str = ""


class Why(StrEnum):
    """Why a pod is kept back."""

    NOT_INITIALISED = "gang-not-initialised"
    BASIC_CHECK = "basic-check"
    NOT_ATTEMPTED_YET = "not-attempted-yet"
    NOT_PENDING = "not-pending"
    REPRESENTATIVE = "representative-exists"
    ROUND_FAILED = "round-failed"


@dataclass(frozen=True, slots=True)
class Permitted:
    """All who may go now, the pod that was asked about among them; `rounds` is how often in a row they had not fitted before."""

    pods: tuple[PodKey, ...]
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """A pod waits on its node for others, so long at most (nanoseconds)."""

    wait: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Which pods may be tried next, any of them first; none where the round is over. `rejected` give their nodes back then."""

    candidates: tuple[PodKey, ...] = ()
    rejected: tuple[PodKey, ...] = ()


class GangRules(Protocol):
    """What policy says of a gang as it stands now."""

    def complete(self, gang: Gang, group: GangGroup) -> bool:
        """Whether enough of its pods are there."""
        ...

    def satisfied(self, gang: Gang, group: GangGroup) -> bool:
        """Whether enough of its pods have a node."""
        ...

    def free(self, gang: Gang, group: GangGroup) -> bool:
        """Whether its pods are placed one by one."""
        ...

    def rejects_together(self, gang: Gang, group: GangGroup) -> bool:
        """Whether all who wait give their nodes back where one does not get there."""
        ...

    def one_enters(self, gang: Gang, group: GangGroup) -> bool:
        """Whether one pod waits in the queue for all."""
        ...


def gang_id(key: GangKey) -> str:
    """`NAMESPACE/NAME`."""
    return f"{key[0]}/{key[1]}"


def in_order(gangs: Iterable[Gang], of: str) -> Iterator[PodKey]:
    """The pods of a set (`pending`, `waiting`) of gangs, gang by gang."""
    for gang in gangs:
        yield from getattr(gang, of)
