"""The audit log of a node: the newest events, as JSON lines, in memory of a fixed size."""

import json
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Final

from koordpolicy.model.time import time_text
from koordpolicy.runtime.decision_file import Sink

LOG: Final = logging.getLogger(__name__)

MOST_READERS: Final = 4
READERS_LIVE: Final = 600 * 10**9
"""Nanoseconds after its last question in which a reader may go on."""
PAGE: Final = 256
MOST_ON_A_PAGE: Final = 2048


class AuditLevel(IntEnum):
    """How much an event matters, as Koordinator's agent counts: less is more."""

    EVICTION = 0
    SUPPRESSION = 1
    POLICY = 2
    WRITE = 3


class AuditSubject(StrEnum):
    """What an event is about."""

    NODE = "node"
    POD = "pod"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """Something that was done, or would be in a dry run. `at` in nanoseconds since 1970."""

    at: int
    level: AuditLevel
    subject: AuditSubject
    reason: str
    message: str
    namespace: str = ""
    name: str = ""
    container: str = ""

    @property
    def json(self) -> dict[str, Any]:
        """As it is told over HTTP."""
        said = {"namespace": self.namespace, "name": self.name, "container": self.container}
        return {
            "createdAt": time_text(self.at),
            "type": str(self.subject),
            "level": int(self.level),
            **{key: value for key, value in said.items() if value},
            "reason": self.reason,
            "message": self.message,
        }


class UnknownReader(LookupError):
    """A page token that is none, or that was not used for too long."""


@dataclass(slots=True)
class _Reader:
    """Where somebody goes on, by the number of the next event, and when it asked last."""

    following: int
    asked_at: int


class AuditLog:
    """Events, the newest `most_bytes` of them. `sink` gets each as a line; `token` makes texts that nobody guesses.

    `clock` gives nanoseconds that never run backwards.
    """

    def __init__(
        self,
        most_bytes: int,
        clock: Callable[[], int],
        token: Callable[[], str],
        sink: Sink | None = None,
        verbosity: AuditLevel = AuditLevel.WRITE,
    ) -> None:
        self._lines: deque[str] = deque()
        self._bytes = 0
        self._most = most_bytes
        self._first = 0
        """The number of the oldest event that is kept."""
        self._clock = clock
        self._token = token
        self._sink = sink
        self._verbosity = verbosity
        self._readers: OrderedDict[str, _Reader] = OrderedDict()
        self.trouble = ""
        """Why the last event was not written to the sink; empty when it was."""

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, event: AuditEvent) -> None:
        """Remember an event, unless it matters too little."""
        if event.level > self._verbosity:
            return
        line = json.dumps(event.json, ensure_ascii=True)
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes > self._most:
            self._bytes -= len(self._lines.popleft())
            self._first += 1
        if self._sink is not None:
            self._hand_on(self._sink, line)

    def _hand_on(self, sink: Sink, line: str) -> None:
        try:
            sink.write(line + "\n")
            sink.flush()
        except OSError as error:
            if not self.trouble:
                LOG.warning("the audit log is not written: %s", error)
            self.trouble = str(error)
        else:
            self.trouble = ""

    def page(self, size: int = PAGE, token: str = "") -> tuple[list[str], str]:
        """Events as JSON lines, the newest first, from where the token goes on; and the next one, "" at the end.

        Raises UnknownReader.
        """
        now = self._clock()
        for old in [key for key, one in self._readers.items() if now - one.asked_at > READERS_LIVE]:
            del self._readers[old]
        if token:
            reader = self._readers.pop(token, None)
            if reader is None:
                raise UnknownReader(token)
        else:
            reader = _Reader(self._first + len(self._lines) - 1, now)
        last = max(reader.following - size, self._first - 1)
        lines = [self._lines[at - self._first] for at in range(reader.following, last, -1)]
        if last < self._first:
            return lines, ""
        reader.following, reader.asked_at = last, now
        following = self._token()
        self._readers[following] = reader
        if len(self._readers) > MOST_READERS:
            self._readers.popitem(last=False)
        return lines, following


def page_json(lines: list[str], token: str) -> Mapping[str, Any]:
    """A page as Koordinator's agent answers in JSON."""
    return {"NextPageToken": token, "Events": [json.loads(line) for line in lines]}
