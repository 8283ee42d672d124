"""Logging of a process: lines for people, or JSON objects for collectors."""

import logging
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TextIO

from koordpolicy.diagnostics.escaping import json_text, safe
from koordpolicy.diagnostics.wording import worded
from koordpolicy.runtime.clock import monotonic

CERTIFICATE_REMINDER: Final = 3600.0
"""Seconds after which a trouble with a certificate that lasts is told again: it is looked at every few seconds."""

_USUAL: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


def set_up_logging(format: LogFormat, *, verbose: bool = False, out: TextIO | None = None) -> None:
    """Send the process's log to standard error, and nowhere else."""
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(JsonLines() if format is LogFormat.JSON else TextLines())
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("koordpolicy").setLevel(logging.DEBUG if verbose else logging.INFO)


class LoggedOnce:
    """A trouble that lasts: a warning when it begins and when it becomes another one, not each time it is met.

    With `remind`, one that lasts is told again after so many seconds by `clock`.
    """

    def __init__(
        self, log: logging.Logger, *, remind: float = math.inf, clock: Callable[[], float] = monotonic
    ) -> None:
        self._log = log
        self._remind = remind
        self._clock = clock
        self._trouble = ""
        self._told = 0.0

    def met(self, trouble: str, text: str = "%s", *values: object) -> None:
        """Warn of a trouble, unless it is the one that was met last; without `text`, the trouble says all."""
        now = self._clock()
        if trouble != self._trouble or now - self._told >= self._remind:
            self._log.warning(text, *(values or (trouble,)))
            self._told = now
        self._trouble = trouble

    def over(self) -> None:
        """All is well: the next trouble is news, whatever it is."""
        self._trouble = ""


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _message(record: logging.LogRecord) -> str:
    """What the line says. An exception among its arguments is put in words here, so that no reason is ever empty."""
    if isinstance(record.args, tuple) and any(isinstance(one, BaseException) for one in record.args):
        args = tuple(worded(one) if isinstance(one, BaseException) else one for one in record.args)
        return str(record.msg) % args
    return record.getMessage()


def _source(record: logging.LogRecord) -> str:
    return record.name.removeprefix("koordpolicy.")


class TextLines(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO runtime.policies.live: revision ... is active`."""

    def format(self, record: logging.LogRecord) -> str:
        # What continues a message is indented: no name or text of a policy can forge a line.
        message = safe(_message(record)).replace("\n", "\n  ")
        line = f"{_moment(record)} {record.levelname} {_source(record)}: {message}"
        return f"{line}\n{safe(self.formatException(record.exc_info))}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One object a line: `time`, `level`, `logger`, `message`, `exception`, and what the record has of its own."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": _source(record),
            "message": _message(record),
        }
        entry.update({key: value for key, value in vars(record).items() if key not in _USUAL})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json_text(entry, default=str)
