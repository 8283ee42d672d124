"""Whether the API server answers us and takes us for who we are, as the requests tell that are made anyway."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from koordpolicy.kube.resources import EVENTS, LEASES, POLICY_REVISIONS
from koordpolicy.runtime.process import Readiness
from koordpolicy.runtime.requests import RequestCounts

LOG: Final = logging.getLogger(__name__)

CONDITION: Final = "apiserver"

GRACE: Final = 30.0
"""Seconds of trouble after which a process says that it is not ready, unless told otherwise."""
_LOOK: Final = 1.0
"""Seconds between two looks."""

_READS: Final = frozenset({"list", "watch"})
_LEADS: Final = frozenset({"get", "create", "update"})
_REPORTS: Final = frozenset({POLICY_REVISIONS.name, EVENTS.name, LEASES.name})
"""What is read only for reports: without it a process does its work all the same."""


class ServerSight:
    """Hears of each answer to a request (an `Observer`), and says what is wrong.

    Each process renews a lease every few seconds, so that silence is noticed where nothing else is asked.
    `clock` gives seconds that never run backwards.
    """

    def __init__(self, counts: RequestCounts, clock: Callable[[], float]) -> None:
        self._counts = counts
        self._clock = clock
        self._failing: tuple[float, int] | None = None
        self._refused: dict[tuple[str, str], float] = {}

    def add(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """An answer, or with status 0 that there was none."""
        self._counts.add(verb, resource, status, seconds)
        if 200 <= status < 500 and status != 401:
            if self._failing is not None:
                self._failing = None
            if status == 403:
                if _needed(verb, resource):
                    self._refused.setdefault((verb, resource), self._clock())
            elif self._refused:
                self._refused.pop((verb, resource), None)
        elif self._failing is None:
            self._failing = self._clock(), status
        else:
            self._failing = self._failing[0], status

    def trouble(self, grace: float) -> str:
        """What has been wrong for longer than `grace` seconds; "" when nothing has."""
        now = self._clock()
        if self._failing is not None and now - self._failing[0] >= grace:
            since, status = self._failing
            return (
                f"{_FAILURES.get(status, f'the API server fails (HTTP {status})')}, for {now - since:.0f} s"
            )
        refused = sorted(what for what, since in self._refused.items() if now - since >= grace)
        if refused:
            verb, resource = refused[0]
            more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
            return (
                f"the API server does not let us {verb} {resource}{more} (403); it may not have loaded its roles"
                " yet. If it lasts, apply those of `deploy/rbac`"
            )
        return ""


_FAILURES: Final = {0: "the API server does not answer", 401: "the API server does not know us (401)"}


def _needed(verb: str, resource: str) -> bool:
    """Whether work stops without it."""
    if resource == LEASES.name:
        return verb in _LEADS
    return verb in _READS and resource not in _REPORTS


async def follow(sight: ServerSight, readiness: Readiness, grace: float) -> None:
    """Keep the condition `apiserver` of a process true, for ever."""
    readiness.reached(CONDITION)
    before = ""
    while True:
        trouble = sight.trouble(grace)
        if trouble:
            readiness.wait_for(CONDITION, trouble)
            if not before:
                LOG.warning("not ready: %s", trouble)
        elif before:
            readiness.reached(CONDITION)
            LOG.info("ready again: the API server answers")
        before = trouble
        await asyncio.sleep(_LOOK)
