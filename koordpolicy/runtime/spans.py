"""The door to OpenTelemetry's library: spans are made with ids and times of ours, and sent in a thread of its own."""

from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from koordpolicy.runtime.trace_context import Attributes, TraceContext

_NAME: Final = "koordpolicy"
_LONGEST: Final = 512
"""Characters of a text in a span. Names and messages come from whoever may create pods, and thousands of spans wait at a time."""
_SENDING: Final = 5.0
"""Seconds that a collector has for an answer."""


class Exporting:
    """Makes spans and hands them to the library, which sends them in batches and drops what is too much."""

    def __init__(self, provider: TracerProvider, ids: "_Ids") -> None:
        self._provider = provider
        self._ids = ids
        self._tracer: Tracer = provider.get_tracer(_NAME)

    def add(
        self,
        name: str,
        context: TraceContext,
        began: int,
        ended: int,
        attributes: Attributes,
        problem: str,
    ) -> int:
        """A span of that trace, below its parent if it has one; gives the span's id."""
        above = None
        if context.parent:
            known = SpanContext(
                context.trace, context.parent, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
            )
            above = set_span_in_context(NonRecordingSpan(known))
        self._ids.trace = context.trace
        said = {key: _clean(value) if isinstance(value, str) else value for key, value in attributes.items()}
        span = self._tracer.start_span(name, above, attributes=said, start_time=began)
        if problem:
            span.set_status(Status(StatusCode.ERROR, _clean(problem)))
        span.end(max(began, ended))
        return span.get_span_context().span_id

    def close(self, milliseconds: int) -> None:
        """Send what waits, so long at most."""
        self._provider.force_flush(milliseconds)
        self._provider.shutdown()


def _clean(text: str) -> str:
    """What of a text goes into a span: not more than a few lines, whoever wrote it, and characters that can be sent."""
    return text[:_LONGEST].encode("utf-8", "replace").decode("utf-8")


class _Ids(RandomIdGenerator):
    """Random ids of spans; a trace without a parent gets the id that it is to have."""

    trace = 0

    def generate_trace_id(self) -> int:
        return self.trace


def start_exporting(endpoint: str, component: str, instance: str, version: str) -> Exporting:
    """Begin to send spans of a process to a collector at an address of OTLP over HTTP."""
    resource = Resource.create(
        {
            "service.name": f"{_NAME}-{component}",
            "service.namespace": _NAME,
            "service.instance.id": instance,
            "service.version": version,
        }
    )
    ids = _Ids()
    provider = TracerProvider(
        ALWAYS_ON,
        resource,
        shutdown_on_exit=False,
        id_generator=ids,
    )
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_SENDING)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Exporting(provider, ids)
