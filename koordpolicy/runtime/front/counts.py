"""What a front counts, as Prometheus reads it. The rows of `runtime/metrics/table.py` say what each number means."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum


class AnsweredBy(StrEnum):
    """Who has answered a request: the manager behind, another replica, the front itself by refusing it, or nobody in time."""

    MANAGER = "manager"
    REPLICA = "replica"
    FRONT = "front"
    NOBODY = "nobody"


class FrontCounts:
    """The counts of one front. Its loop alone adds to them; whoever is told reads them from another thread."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[AnsweredBy, str]] = Counter()
        """By who has answered, and the status."""
        self.carried = 0
        self.closed: Counter[str] = Counter()
        """Connections that were ended by us, by reason."""

    def answered(self, by: AnsweredBy, text: bytes) -> None:
        """An answer as it is sent."""
        self.answers[by, text[9:12].decode("latin-1")] += 1


def told(counts: FrontCounts, connections: int, in_flight: Mapping[str, int]) -> bytes:
    """The page `/metrics`. `in_flight` are requests by who is to answer them."""
    lines = [
        *_lines(
            "koordpolicy_front_requests_total",
            "counter",
            (
                ({"answered_by": str(by), "code": code}, count)
                for (by, code), count in sorted(counts.answers.copy().items())
            ),
        ),
        *_lines("koordpolicy_front_carried_total", "counter", [({}, counts.carried)]),
        *_lines(
            "koordpolicy_front_requests_in_flight",
            "gauge",
            (({"where": where}, count) for where, count in in_flight.items()),
        ),
        *_lines("koordpolicy_front_connections", "gauge", [({}, connections)]),
        *_lines(
            "koordpolicy_front_connections_closed_total",
            "counter",
            (({"reason": reason}, count) for reason, count in sorted(counts.closed.copy().items())),
        ),
        *_lines("process_cpu_seconds_total", "counter", [({}, time.process_time())]),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(name: str, kind: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterable[str]:
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        said = ",".join(f'{key}="{text}"' for key, text in labels.items())
        yield f"{name}{{{said}}} {value}" if said else f"{name} {value}"
