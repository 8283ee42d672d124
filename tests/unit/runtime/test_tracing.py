"""Which trace a pod belongs to, and which pods have one."""

import uuid
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from koordpolicy.model.protocol import TRACEPARENT
from koordpolicy.runtime.trace_context import TraceContext
from koordpolicy.runtime.tracing import Tracing, TracingSettings

NOWHERE = "http://127.0.0.1:9"
GIVEN = f"00-{'ab' * 16}-{'cd' * 8}-01"
UID = "0f9c3a52-52a4-4c3b-9a44-7f0a4d3c2b1e"


def tracing(sampling: float) -> Tracing:
    return Tracing(TracingSettings(NOWHERE, sampling), "scheduler", "one", "0")


@pytest.fixture(scope="module")
def every() -> Tracing:
    return tracing(1.0)


def test_a_uid_is_the_trace(every: Tracing) -> None:
    assert every.context(UID, {}) == TraceContext(int(UID.replace("-", ""), 16))
    assert tracing(0.0).context(UID, {}) is None


def test_what_a_pod_says_goes_first(every: Tracing) -> None:
    said = TraceContext(int("ab" * 16, 16), int("cd" * 8, 16))
    assert every.context(UID, {TRACEPARENT: GIVEN}) == said
    assert tracing(0.0).context(UID, {TRACEPARENT: GIVEN}) == said
    assert str(said) == GIVEN


@pytest.mark.parametrize("flags", ["00", "02", "fe"])
def test_what_is_not_sampled_there_is_not_sampled_here(every: Tracing, flags: str) -> None:
    assert every.context(UID, {TRACEPARENT: f"{GIVEN[:-2]}{flags}"}) is None


@pytest.mark.parametrize(
    "said",
    ["", "no", GIVEN.upper(), f"{GIVEN}-1", f"ff{GIVEN[2:]}", f"00-{'ab' * 16}-{'cd' * 8}", "\u0661" * 55],
)
def test_what_makes_no_sense_says_nothing(every: Tracing, said: str) -> None:
    assert every.context(UID, {TRACEPARENT: said}) == every.context(UID, {})


@pytest.mark.parametrize("said", [f"00-{'0' * 32}-{'cd' * 8}-01", f"00-{'ab' * 16}-{'0' * 16}-01"])
def test_ids_of_nothing_but_zeros_are_invalid(every: Tracing, said: str) -> None:
    assert every.context(UID, {TRACEPARENT: said}) is None


@pytest.mark.parametrize("uid", ["", "node-1", "00000000-0000-0000-0000-000000000000", "g" * 32, "12"])
def test_what_is_no_uid_has_no_trace(every: Tracing, uid: str) -> None:
    assert every.context(uid, {}) is None


@given(st.lists(st.uuids(version=4), min_size=1, max_size=20), st.floats(0, 1))
def test_processes_agree_and_a_larger_part_holds_the_smaller(uids: Sequence[uuid.UUID], part: float) -> None:
    one, other, larger = (tracing(value) for value in (part, part, min(1.0, part * 2)))
    for uid in map(str, uids):
        assert one.context(uid, {}) == other.context(uid, {})
        assert one.context(uid, {}) is None or larger.context(uid, {}) is not None


def test_the_part_is_that_of_pods_though_uids_have_fixed_bits() -> None:
    few = tracing(0.25)
    uids = [
        str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128, version=4))
        for number in range(4000)
    ]
    traced = sum(few.context(uid, {}) is not None for uid in uids)
    assert 850 < traced < 1150
    assert 850 < sum(few.new_context(uid) is not None for uid in uids) < 1150


def test_a_collector_that_is_not_there_costs_nothing_but_its_spans(every: Tracing) -> None:
    context = every.context(UID, {})
    assert context is not None
    below = every.add("admit", context, 5, 3, {"one": 1}, "a problem")  # a clock that was set back
    assert below.trace == context.trace
    assert below.parent


def test_texts_of_others_are_cut_and_can_be_sent() -> None:
    tracing_ = tracing(1.0)
    sent: list[ReadableSpan] = []
    provider = tracing_._exporting._provider  # what a collector would get
    provider.add_span_processor(SimpleSpanProcessor(Kept(sent)))
    context = tracing_.context(UID, {})
    assert context is not None
    tracing_.add("admit", context, 1, 2, {"name": "x" * 1_000_000, "half": "\ud800"}, "y" * 1_000_000)
    (span,) = sent
    assert len(str((span.attributes or {})["name"])) == len(span.status.description or "") == 512
    assert (span.attributes or {})["half"] == "?"


class Kept(SpanExporter):
    def __init__(self, spans: list[ReadableSpan]) -> None:
        self._spans = spans

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._spans += spans
        return SpanExportResult.SUCCESS
