"""Traces of pods' ways through the processes: admitted, decided, bound, held on the node; each span with its revision.

A trace is one pod's. A pod that has `koordpolicy.io/traceparent` (https://www.w3.org/TR/trace-context) belongs to that trace: the webhook
gives it one when it is created, and so may whoever creates it. Any other pod's trace has its UID, without hyphens, as id, so
processes that know nothing of each other agree on it.

The library of OpenTelemetry is imported by a process that traces, and by no other; it obeys its environment variables
(`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE` and so on).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from koordpolicy.model.protocol import TRACEPARENT
from koordpolicy.runtime.trace_context import SAMPLED, Attributes, TraceContext

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_UID_HEX: Final = 32
_FAREWELL: Final = 2000
"""Milliseconds in which the last spans are sent when the process stops."""


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Where spans go: the address of a collector that takes OTLP over HTTP, such as `http://collector:4318`.

    `sampling` is the part of pods, from 0 to 1, that is traced; who has a `traceparent` is traced as that says.
    """

    endpoint: str
    sampling: float


class Tracing:
    """Makes spans of one process and sends them; what cannot be sent is dropped, and its library's log says so."""

    def __init__(self, settings: TracingSettings, component: str, instance: str, version: str) -> None:
        from koordpolicy.runtime.spans import start_exporting  # noqa: PLC0415  # see above

        self._sampling = settings.sampling
        self._exporting = start_exporting(settings.endpoint, component, instance, version)

    def context(self, uid: str, annotations: Mapping[str, str]) -> TraceContext | None:
        """The trace that a pod belongs to; None where it is not traced, or has neither a context nor a UID."""
        said = annotations.get(TRACEPARENT)
        if said is not None and (found := _TRACEPARENT.fullmatch(said)) is not None:
            trace, parent = int(found[1], 16), int(found[2], 16)
            sampled = int(found[3], 16) & SAMPLED and trace and parent
            return TraceContext(trace, parent) if sampled else None
        trace = _of_uid(uid)
        return TraceContext(trace) if trace and self._sampled(uid) else None

    def new_context(self, seed: str) -> TraceContext | None:
        """A trace for a pod that has no UID yet; None where it is not to be traced. `seed` is different for each request."""
        if not self._sampled(seed):
            return None
        return TraceContext(int.from_bytes(blake2b(seed.encode(), digest_size=16).digest()))

    def add(
        self,
        name: str,
        context: TraceContext,
        began: int,
        ended: int,
        attributes: Attributes,
        problem: str = "",
    ) -> TraceContext:
        """Add a span from `began` to `ended`, in nanoseconds since 1970; gives what spans below it belong to."""
        return TraceContext(
            context.trace, self._exporting.add(name, context, began, ended, attributes, problem)
        )

    def close(self) -> None:
        """Send what is left, for a moment at most."""
        self._exporting.close(_FAREWELL)

    def _sampled(self, seed: str) -> bool:
        """Whether one of many is traced: the same in each process. A UID's own bits are not spread evenly, so they are hashed."""
        drawn = int.from_bytes(blake2b(seed.encode(), digest_size=8, person=b"sampling").digest())
        return drawn < self._sampling * 2**64


def _of_uid(uid: str) -> int:
    """A UID as the id of a trace; 0 where it is none."""
    digits = uid.replace("-", "").lower()
    try:
        return int(digits, 16) if len(digits) == _UID_HEX else 0
    except ValueError:
        return 0
