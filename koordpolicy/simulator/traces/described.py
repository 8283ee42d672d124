"""Workloads described in a few lines: kinds of nodes, services, jobs; a seed makes single ones of them.

    day: 24h
    nodes:    [{name: web, count: 60, cpu: 32, memory: 128Gi, labels: {pool: web}}]
    services: [{name: shop, replicas: 120, cpu: 2, memory: 4Gi, base: 10%, peak: 45%, peakAt: 14h}]
    jobs:     [{name: report, count: 300, cpu: 4, memory: 6Gi, runs: 40m, from: 1h, to: 22h, labels: {...}}]

Services are there from the beginning to the end. Jobs begin at times spread evenly over `from` to `to`,
and need between half and one and a half of `runs`. JSON is YAML, so both will do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koordpolicy.language.documents import Document
from koordpolicy.model.protocol import CPU, MEMORY, PODS
from koordpolicy.model.quantity import QuantityError, amount
from koordpolicy.model.time import parse_duration
from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.clock import LONGEST
from koordpolicy.simulator.one_document import one_document
from koordpolicy.simulator.traces.rows import MAX_ROWS
from koordpolicy.simulator.workload import SERVICE, Arrival, Json, Wave, Workload, WorkloadError

MAX_OF_A_KIND = 100_000
PODS_PER_NODE = 110
_IMAGE = "simulated"

_COMMON = {"name", "cpu", "memory", "labels"}
_KEYS = {
    "": {"title", "day", "nodes", "services", "jobs"},
    "nodes": _COMMON | {"count"},
    "services": _COMMON | {"replicas", "base", "peak", "peakAt"},
    "jobs": _COMMON | {"count", "runs", "from", "to", "load"},
}
_REQUIRED = {
    "nodes": ("name", "count", "cpu", "memory"),
    "services": ("name", "replicas", "cpu", "memory"),
    "jobs": ("name", "count", "cpu", "memory", "runs"),
}
_HOUR = 3600 * 1_000_000_000


def read_described(file: Path, chance: Chance) -> Workload:
    """The workload that a file describes. Raises WorkloadError with file, line and what is wrong."""
    return _Description(one_document(file), chance).workload()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One kind of node, service or job, with checked access to what is said of it."""

    document: Document
    path: tuple[str | int, ...]
    said: Mapping[str, Any]

    def wrong(self, key: str, message: str) -> WorkloadError:
        span = self.document.positions.value((*self.path, key) if key else self.path)
        return WorkloadError(f"{span.file}:{span.start.line}: {message}")

    def text(self, key: str, default: str = "") -> str:
        value = self.said.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"`{key}` must be text")
        return value

    def count(self, key: str) -> int:
        value = self.said.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_OF_A_KIND:
            raise self.wrong(key, f"`{key}` must be a whole number up to {MAX_OF_A_KIND:,}")
        return value

    def quantity(self, key: str, resource: str) -> str:
        value = self.said.get(key)
        try:
            if amount(resource, value) <= 0:
                raise self.wrong(key, f"`{key}` must be more than nothing")
        except QuantityError as error:
            raise self.wrong(key, f"`{key}`: {error}") from None
        return str(value)

    def duration(self, key: str, default: int) -> int:
        value = self.said.get(key)
        if value is None:
            return default
        try:
            length = parse_duration(str(value))
        except ValueError as error:
            raise self.wrong(key, f"`{key}`: {error}") from None
        if length < 0:
            raise self.wrong(key, f"`{key}`: `{value}` is negative")
        if length > LONGEST:
            raise self.wrong(key, f"`{key}`: `{value}` is more than 80 years")
        return length

    def share(self, key: str, default: float) -> float:
        value = self.said.get(key)
        if value is None:
            return default
        text = str(value)
        try:
            share = float(text.removesuffix("%")) / 100 if text.endswith("%") else -1.0
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise self.wrong(key, f"`{key}` must be a percentage from 0% to 100%, such as `45%`")
        return share

    def labels(self) -> dict[str, str]:
        value = self.said.get("labels", {})
        if not isinstance(value, Mapping) or any(not isinstance(one, str) for one in value.values()):
            raise self.wrong("labels", "`labels` must map names to text")
        return dict(value)


class _Description:
    """A description on its way to a workload."""

    def __init__(self, document: Document, chance: Chance) -> None:
        self.document = document
        self.chance = chance
        self.whole = _Entry(document, (), document.data)
        self._known(self.whole, "")
        self.day = self.whole.duration("day", 24 * _HOUR)

    def workload(self) -> Workload:
        self._demand_size()
        nodes = tuple(node for entry in self._entries("nodes") for node in self._nodes(entry))
        arrivals = [one for entry in self._entries("services") for one in self._services(entry)]
        arrivals += [one for entry in self._entries("jobs") for one in self._jobs(entry)]
        arrivals.sort(key=lambda arrival: arrival.time)
        return Workload(nodes, tuple(arrivals), self.whole.text("title"), span=self.day)

    def _demand_size(self) -> None:
        """Raise WorkloadError where all entries together make too much, before any of it is made."""
        count = 0
        for kind, key in (("nodes", "count"), ("services", "replicas"), ("jobs", "count")):
            for entry in self._entries(kind):
                count += entry.count(key)
                if count > MAX_ROWS:
                    raise entry.wrong(
                        key, f"`{key}`: more than {MAX_ROWS:,} nodes and pods by then; describe fewer"
                    )

    def _entries(self, key: str) -> Iterator[_Entry]:
        said = self.document.data.get(key, [])
        if not isinstance(said, list):
            raise self.whole.wrong(key, f"`{key}` must be a list")
        for index, one in enumerate(said):
            if not isinstance(one, dict):
                raise _Entry(self.document, (key, index), {}).wrong(
                    "", f"an entry of `{key}` must be a mapping"
                )
            entry = _Entry(self.document, (key, index), one)
            self._known(entry, key)
            for wanted in _REQUIRED[key]:
                if wanted not in one:
                    raise entry.wrong("", f"an entry of `{key}` needs `{wanted}`")
            yield entry

    @staticmethod
    def _known(entry: _Entry, key: str) -> None:
        for said in entry.said:
            if said not in _KEYS[key]:
                known = ", ".join(f"`{one}`" for one in sorted(_KEYS[key]))
                raise entry.wrong(said, f"unknown key `{said}`; there are {known}")

    def _nodes(self, entry: _Entry) -> Iterator[Json]:
        resources = {**_resources(entry), PODS: str(PODS_PER_NODE)}
        for number in range(entry.count("count")):
            name = f"{entry.text('name')}-{number:03}"
            labels = {"kubernetes.io/hostname": name, **entry.labels()}
            yield {
                "metadata": {"name": name, "labels": labels},
                "status": {"capacity": resources, "allocatable": resources},
            }

    def _services(self, entry: _Entry) -> Iterator[Arrival]:
        wave = Wave(
            entry.share("base", SERVICE.base),
            entry.share("peak", SERVICE.peak),
            entry.duration("peakAt", int(SERVICE.peak_hour * _HOUR)) / _HOUR,
        )
        requests = _resources(entry)
        for number in range(entry.count("replicas")):
            yield Arrival(0, _pod(f"{entry.text('name')}-{number}", requests, {}, entry.labels()), None, wave)

    def _jobs(self, entry: _Entry) -> Iterator[Arrival]:
        requests = _resources(entry)
        begin, end = entry.duration("from", 0), entry.duration("to", self.day)
        if end < begin:
            raise entry.wrong("to", "`to` lies before `from`")
        runs, load = entry.duration("runs", 0), entry.share("load", 0.95)
        for number in range(entry.count("count")):
            yield Arrival(
                begin + int((end - begin) * self.chance.random()),
                _pod(f"{entry.text('name')}-{number}", requests, requests, entry.labels()),
                int(runs * (0.5 + self.chance.random())),
                Wave(load, load),
            )


def _resources(entry: _Entry) -> dict[str, str]:
    return {CPU: entry.quantity("cpu", CPU), MEMORY: entry.quantity("memory", MEMORY)}


def _pod(name: str, requests: Json, limits: Json, labels: Json) -> Json:
    resources = {"requests": requests, "limits": limits} if limits else {"requests": requests}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": _IMAGE, "resources": resources}]},
    }
