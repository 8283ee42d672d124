"""The decision log: sampled, complete in what it says, never in the way."""

import io
import json
import threading

from koordpolicy.graph import Layer, compile_policies
from koordpolicy.runtime.decisions import QUEUE, DecisionLog
from koordpolicy.runtime.metrics import Metrics
from tests.unit.runtime.scenes import SUPPRESS, tree

FILES = {**tree(1), "all.yaml": SUPPRESS % "node.capacity.cpu - node.usage.prod.cpu"}
GRAPH = compile_policies(Layer("bundle", FILES)).graph
FACTS = {"capacity.cpu": 8000, "usage.prod.cpu": 3000}


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_an_entry_says_what_was_decided_and_why() -> None:
    assert GRAPH is not None
    out, metrics = io.StringIO(), Metrics("test")
    log = DecisionLog(out, metrics, "agent", every=1)
    log.record(GRAPH.ask("CPUSuppress.target", node=FACTS), {"node": "n1"}, "abc")
    log.record(GRAPH.ask("CPUSuppress.target", node={}), {"node": "n2"}, "abc")
    log.close()
    first, second = lines(out)
    assert first["component"] == "agent"
    assert (first["revision"], first["digest"]) == ("abc", GRAPH.digest)
    assert (first["decision"], first["value"], first["subject"]) == (
        "CPUSuppress.target",
        5000,
        {"node": "n1"},
    )
    assert first["facts"] == {"node.capacity.cpu": 8000, "node.usage.prod.cpu": 3000}
    assert first["rules"] == [
        {
            "decision": "CPUSuppress.target",
            "document": "CPUSuppress/all",
            "layer": "bundle",
            "place": "all.yaml:5:11",
        }
    ]
    assert "value" not in second
    assert "node.capacity.cpu" in str(second["error"])
    assert metrics.value("koordpolicy_decision_log_total", result="written") == 2


def test_each_so_many_th_of_a_name_is_wanted() -> None:
    log = DecisionLog(io.StringIO(), Metrics("test"), "agent", every=3)
    assert [log.wants("a") for _ in range(7)] == [True, False, False, True, False, False, True]
    assert log.wants("b")
    log.close()
    silent = DecisionLog(io.StringIO(), Metrics("test"), "agent", every=0)
    assert not silent.wants("a")
    silent.close()


class Slow(io.StringIO):
    """A disk that is busy until it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        assert self.free.wait(30)
        return super().write(text)


def test_what_cannot_be_written_in_time_is_dropped_and_counted() -> None:
    assert GRAPH is not None
    out, metrics = Slow(), Metrics("test")
    log = DecisionLog(out, metrics, "agent", every=1)
    answer = GRAPH.ask("CPUSuppress.target", node=FACTS)
    for number in range(QUEUE + 100):
        log.record(answer, {"node": str(number)}, "abc")
    dropped = metrics.value("koordpolicy_decision_log_total", result="dropped") or 0
    assert 98 <= dropped <= 100
    out.free.set()
    log.close()
    written = metrics.value("koordpolicy_decision_log_total", result="written") or 0
    assert written + dropped == QUEUE + 100
    assert len(lines(out)) == written


class Full(io.StringIO):
    """A disk without room."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_stops_nothing() -> None:
    assert GRAPH is not None
    metrics = Metrics("test")
    log = DecisionLog(Full(), metrics, "agent", every=1)
    log.record(GRAPH.ask("CPUSuppress.target", node=FACTS), {}, "abc")
    log.close()
    assert metrics.value("koordpolicy_decision_log_total", result="dropped") == 1
