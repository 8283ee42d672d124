"""Whether the API server answers us and takes us for who we are, as the requests tell that are made anyway."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from koordpolicy.kube.resources import EVENTS, LEASES, POLICY_REVISIONS
from koordpolicy.runtime.process import Readiness
from koordpolicy.runtime.requests import RequestCounts

LOG: Final = logging.getLogger(__name__)

CONDITION: Final = "apiserver"

GRACE: Final = 30.0
"""Seconds of trouble after which a process says that it is not ready, unless told otherwise."""
_LOOK: Final = 1.0
"""Seconds between two looks."""
_AWAY: Final = 5.0
"""Seconds without a good answer after which the server counts as one that was away. While others are answered, a
request that fails alone is no reason to wake anybody."""
_RECENT: Final = 10.0
"""Seconds after the server came back in which requests may still fail that were made while it was away."""
_SOON: Final = 1.0
"""Seconds after which these are worth another try."""

_READS: Final = frozenset({"list", "watch"})
_LEADS: Final = frozenset({"get", "create", "update"})
_REPORTS: Final = frozenset({POLICY_REVISIONS.name, EVENTS.name, LEASES.name})
"""What is read only for reports: without it a process does its work all the same."""


class _FailedInARow(NamedTuple):
    """Requests in a row that failed: seconds of the first and of the last, and the last one's status."""

    since: float
    last: float
    status: int


class ServerSight:
    """Hears of each answer to a request (an `Observer`), and says what is wrong.

    Each process renews a lease every few seconds, so that silence is noticed where nothing else is asked; agents, which
    renew none, write what they measure about once a minute. A server whose etcd is away still begins watches, out of its
    cache, and says who may do what: only what it must read or write in etcd shows that it does its work.
    `clock` gives seconds that never run backwards.
    """

    def __init__(self, counts: RequestCounts, clock: Callable[[], float]) -> None:
        self._counts = counts
        self._clock = clock
        self._failing: tuple[float, int] | None = None
        self._unstored: _FailedInARow | None = None
        """Requests that need what the server keeps, and failed: none of them has been answered since the first."""
        self._refused: dict[tuple[str, str], float] = {}
        self._unwatched: dict[str, float] = {}
        """Since when the watch of what is needed could not be begun."""
        self._put_off: dict[tuple[str, str], float] = {}
        """Since when all requests of a kind have been answered with 429, each once it was."""
        self._back = asyncio.Event()
        self._recent = 0.0
        """Until when the server counts as one that has just come back."""

    def add(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """An answer, or with status 0 that there was none."""
        self._counts.add(verb, resource, status, seconds)
        if 200 <= status < 500 and status != 401:
            if self._failing is not None:
                if self._clock() - self._failing[0] >= _AWAY:
                    self._wake()
                self._failing = None
            if status == 403:
                if _needed(verb, resource):
                    self._refused.setdefault((verb, resource), self._clock())
            elif self._refused:
                self._refused.pop((verb, resource), None)
            if verb == "watch" and status in _WATCHED:
                self._unwatched.pop(resource, None)
        elif self._failing is None:
            self._failing = self._clock(), status
        else:
            self._failing = self._failing[0], status
        if _is_stored(verb, resource):
            self._note_stored(status)
        if status == _PUT_OFF:
            if verb != _BUDGETED:
                self._put_off.setdefault((verb, resource), self._clock())
        elif self._put_off and status:
            self._put_off.pop((verb, resource), None)
        if verb == "watch" and (status < 200 or status >= 500 or status == 401) and _needed(verb, resource):
            self._unwatched.setdefault(resource, self._clock())

    def _note_stored(self, status: int) -> None:
        if status in {0, 401} or status >= 500:
            now = self._clock()
            self._unstored = _FailedInARow(
                now if self._unstored is None else self._unstored.since, now, status
            )
        elif 200 <= status < 300 or status == _CONFLICT:
            self._unstored = None

    async def sleep(self, seconds: float) -> bool:
        """Wait for so many seconds; True where it is less, because the server was away and answers again."""
        if seconds > _SOON and self._clock() < self._recent:
            # Asked before it was back, and told of afterwards; by so much more that not all come at once.
            await asyncio.sleep(_SOON + seconds % _SOON)
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._back.wait()
                return True
        return False

    def _wake(self) -> None:
        self._recent = self._clock() + _RECENT
        self._back.set()
        self._back = asyncio.Event()

    @property
    def unwatched(self) -> str:
        """What is needed and not watched, because the watch could not be begun; "" when all is."""
        return _first_of(sorted(self._unwatched))

    def put_off(self, grace: float) -> tuple[str, ...]:
        """Of which requests, such as `bind pods`, none was taken for `grace` seconds or longer: all were answered with 429."""
        now = self._clock()
        return tuple(sorted(" ".join(what) for what, since in self._put_off.items() if now - since >= grace))

    def trouble(self, grace: float) -> str:
        """What has been wrong for longer than `grace` seconds; "" when nothing has."""
        now = self._clock()
        if self._failing is not None and now - self._failing[0] >= grace:
            since, status = self._failing
            return (
                f"{_FAILURES.get(status, f'the API server fails (HTTP {status})')}, for {now - since:.0f} s"
            )
        failures = self._unstored
        # One failure is no outage, however long nothing else is asked: the last must be that much later than the first.
        if failures is not None and failures.last - failures.since >= grace:
            return (
                f"the API server answers no reads and writes (last: {_answer(failures.status)}), for {now - failures.since:.0f} s,"
                " though watches go on: etcd behind it may be away"
            )
        refused = sorted(what for what, since in self._refused.items() if now - since >= grace)
        if refused:
            return (
                f"the API server does not let us {_first_of([' '.join(what) for what in refused])} (403); it may not have loaded its roles"
                " yet. If it lasts, apply those of `deploy/rbac`"
            )
        late = {what: now - since for what, since in self._unwatched.items() if now - since >= grace}
        if late:
            return f"not watched: {_first_of(sorted(late))}, for {max(late.values()):.0f} s"
        return ""


_PUT_OFF: Final = 429
_BUDGETED: Final = "evict"
"""What 429 says of it is that a disruption budget is used up."""
_WATCHED: Final = frozenset({200, 404})
"""Statuses after which nothing of a resource is missed: it is watched, or there is no such resource."""
_FAILURES: Final = {0: "the API server does not answer", 401: "the API server does not know us (401)"}


_CONFLICT: Final = 409
"""Beside success the one status that a server gives for what it keeps alone. It knows without a look at it who may do what
(403), what it does not serve (404), and what nobody may write (422).
"""
_UNSTORED_GROUPS: Final = (".authentication.k8s.io", ".authorization.k8s.io")
"""Of resources that are questions to the server itself, and are kept nowhere."""


def _is_stored(verb: str, resource: str) -> bool:
    """Whether a good answer needs etcd: neither watches, nor paths as `/version`, nor reviews of callers do."""
    return verb != "watch" and not resource.startswith("/") and not resource.endswith(_UNSTORED_GROUPS)


def _answer(status: int) -> str:
    return f"HTTP {status}" if status else "none"


def _first_of(names: Sequence[str]) -> str:
    """The first of many names, and how many there are besides."""
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "") if names else ""


def _needed(verb: str, resource: str) -> bool:
    """Whether work stops without it."""
    if resource == LEASES.name:
        return verb in _LEADS
    return verb in _READS and resource not in _REPORTS


def untold(_what: str) -> None:
    """Tells nobody but the log."""


async def follow(
    sight: ServerSight, readiness: Readiness, grace: float, put_off: Callable[[str], None] = untold
) -> None:
    """Keep the condition `apiserver` of a process true, for ever; `put_off` is told of requests such as `bind pods`."""
    readiness.reached(CONDITION)
    before = unwatched = ""
    late: tuple[str, ...] = ()
    while True:
        late = _tell_of_what_is_put_off(late, sight.put_off(grace), put_off)
        unwatched = _tell_of_watches(unwatched, sight.unwatched)
        trouble = sight.trouble(grace)
        if trouble:
            readiness.wait_for(CONDITION, trouble)
            if not before:
                LOG.warning("not ready: %s", trouble)
        elif before:
            readiness.reached(CONDITION)
            LOG.info("ready again: the API server answers, and what is needed is watched")
        before = trouble
        await asyncio.sleep(_LOOK)


def _tell_of_what_is_put_off(
    before: tuple[str, ...], now: tuple[str, ...], put_off: Callable[[str], None]
) -> tuple[str, ...]:
    """Such a process is ready: others would be put off as it is."""
    for what in now:
        if what not in before:
            LOG.warning(
                "the API server puts off every request to %s (429): it is overloaded, or a FlowSchema or webhook of the cluster"
                " keeps them back; they are tried again",
                what,
            )
            put_off(what)
    for what in before:
        if what not in now:
            LOG.info("the API server takes requests to %s again", what)
    return now


def _tell_of_watches(before: str, now: str) -> str:
    if now and not before:
        LOG.warning("watches have ended: %s", now)
    elif before and not now:
        LOG.info("all watches run again")
    return now
