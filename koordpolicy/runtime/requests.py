"""How requests to the API server went: there are tens of thousands, so counting one must cost next to nothing."""

from bisect import bisect_left
from collections.abc import Iterable

from koordpolicy.runtime.counting import Sample
from koordpolicy.runtime.metrics import Metrics, Sizes

_ANSWERS = "koordpolicy_kube_requests_total"
_TIMES = "koordpolicy_kube_request_duration_seconds"


class RequestCounts:
    """Counts requests, from one thread; any thread may read. Once for the metrics of a process."""

    def __init__(self, metrics: Metrics) -> None:
        self._bounds = metrics.table[_TIMES].buckets
        self._answers: dict[tuple[str, str, int], int] = {}
        self._times: dict[str, list[int]] = {}
        self._totals: dict[str, float] = {}
        metrics.count_elsewhere(_ANSWERS, self)
        metrics.measure_elsewhere(_TIMES, self)

    def add(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count one: its HTTP status (0: no answer came) and how long that took."""
        answer = (verb, resource, status)
        self._answers[answer] = self._answers.get(answer, 0) + 1
        times = self._times.get(verb)
        if times is None:
            self._totals[verb] = 0.0
            times = self._times[verb] = [0] * (len(self._bounds) + 1)
        times[bisect_left(self._bounds, seconds)] += 1
        self._totals[verb] += seconds

    def samples(self) -> Iterable[Sample]:
        """The answers, by verb, resource and status."""
        return [
            ((verb, resource, str(status)), number)
            for (verb, resource, status), number in list(self._answers.items())
        ]

    def sizes(self) -> Iterable[Sizes]:
        """The seconds, by verb."""
        return [((verb,), list(times), self._totals[verb]) for verb, times in list(self._times.items())]
