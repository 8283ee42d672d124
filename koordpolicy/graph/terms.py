"""The terms of a PolicyException: who answers for it, why, and from when until when it holds."""

from dataclasses import dataclass

from koordpolicy.diagnostics import Span
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import NANOS, make_timestamp, parse_timestamp
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec

_DAY = 86_400 * NANOS


@dataclass(frozen=True, slots=True)
class Terms:
    """What an exception's rules carry. It holds from `begins` (always, where None) up to just before `ends`.

    `until` is the end as written, for people. `span` is where the end stands.
    """

    document: str
    layer: str
    owner: str
    reason: str
    begins: Timestamp | None
    ends: Timestamp
    until: str
    span: Span

    def holds(self, moment: Timestamp) -> bool:
        """Whether the exception is in force at a moment."""
        return (self.begins is None or self.begins.ns <= moment.ns) and moment.ns < self.ends.ns

    def meets(self, other: "Terms") -> bool:
        """Whether there is a moment at which both hold."""
        return _start(self) < other.ends.ns and _start(other) < self.ends.ns

    def covers(self, other: "Terms") -> bool:
        """Whether this one holds whenever the other does."""
        return _start(self) <= _start(other) and other.ends.ns <= self.ends.ns


def _start(terms: Terms) -> float:
    return float("-inf") if terms.begins is None else terms.begins.ns


class BadTermsError(ValueError):
    """An exception that could never hold; the message says why, `key` is the one that is wrong."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def terms_of(spec: PolicyExceptionSpec, document: str, layer: str, span: Span) -> Terms:
    """The terms that a document says. Raises `BadTermsError`."""
    begins = None if spec.from_ is None else _moment("from", spec.from_)
    ends = _moment("expires", spec.expires)
    if _is_date(spec.expires):
        ends = _later("expires", ends)
    if begins is not None and begins.ns >= ends.ns:
        raise BadTermsError("expires", "the exception ends before it begins")
    return Terms(
        document, layer, " ".join(spec.owner.split()), spec.reason.strip(), begins, ends, spec.expires, span
    )


def _is_date(written: str) -> bool:
    return "T" not in written


def _moment(key: str, written: str) -> Timestamp:
    """The moment that a text stands for, a date for its first."""
    try:
        return parse_timestamp(f"{written}T00:00:00Z" if _is_date(written) else written)
    except CelError:
        raise BadTermsError(key, f"there is no such day as `{written}`") from None


def _later(key: str, moment: Timestamp) -> Timestamp:
    """The first moment of the next day."""
    try:
        return make_timestamp(moment.ns + _DAY)
    except CelError:
        raise BadTermsError(key, "the exception would never end: there is no day after this one") from None
