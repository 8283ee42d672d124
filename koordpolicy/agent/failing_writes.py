"""Writes to kernel files that fail round after round: told once, and again after a pause, until they are made or not wanted."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.node_pods import NodePod
from koordpolicy.linux.writes.write import ARRIVED, FileOutcome, FileWrite, FileWriteResult
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.time import NANOSECONDS

FAILED: Final = "KernelWriteFailed"
"""The reason of the Event."""
_REFUSALS: Final = 2
"""In a row from which on it is told: a group that is just made or removed fails once."""
_PAUSE: Final = 3600 * NANOSECONDS
_MOST: Final = 1000

_BAD: Final = frozenset({FileOutcome.FAILED, FileOutcome.REFUSED})

FileAndTarget = tuple[str, str]


@dataclass(slots=True)
class FailingWrite:
    """A file that does not take what is wanted there: how often in a row, what the kernel says, when that was told last."""

    write: FileWrite
    path: str
    problem: str
    times: int = 0
    told_at: int | None = None

    @property
    def words(self) -> str:
        """For people."""
        value = self.write.value
        wanted = cpuset_text(value) if isinstance(value, frozenset) else value
        return f"{self.path or self.write.file} is not set to {wanted}: {self.problem} ({self.write.reason})"


@dataclass(slots=True)
class FailingWrites:
    """Those of one process, by file and target."""

    _known: dict[FileAndTarget, FailingWrite] = field(default_factory=dict)

    def heard(self, results: Iterable[FileWriteResult], now: int) -> list[FailingWrite]:
        """Take note of what became of writes; those of which is to be told. `now` in nanoseconds."""
        for one in results:
            key = (one.write.file, one.write.target)
            if one.outcome in _BAD:
                self._failed(key, one)
            elif one.outcome in ARRIVED or one.outcome is FileOutcome.UNSUPPORTED:
                self._known.pop(key, None)
        due = [
            lasting
            for lasting in self._lasting()
            if lasting.told_at is None or now - lasting.told_at >= _PAUSE
        ]
        for failing in due:
            failing.told_at = now
        return due

    def keep(self, wanted: Callable[[str, str], bool]) -> None:
        """Forget those that nobody wants any more: their group is gone, or policies say something else."""
        for key in [key for key in self._known if not wanted(*key)]:
            del self._known[key]

    @property
    def troubles(self) -> Mapping[str, str]:
        """What is wrong now, by file."""
        return {
            f"write {one.write.file} of {one.write.target or 'the node'}": one.words
            for one in self._lasting()
        }

    def __bool__(self) -> bool:
        return bool(self._known)

    def _failed(self, key: FileAndTarget, found: FileWriteResult) -> None:
        one = self._known.setdefault(key, FailingWrite(found.write, found.path, found.problem))
        one.write, one.path, one.problem = found.write, found.path, found.problem
        one.times += 1
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    def _lasting(self) -> list[FailingWrite]:
        return [one for one in self._known.values() if one.times >= _REFUSALS]


def regarding(one: FailingWrite, pods: Mapping[str, NodePod], node: str) -> Mapping[str, Any]:
    """What an Event is about: the pod in whose group the file is, else the node."""
    target = one.write.target
    for uid, pod in pods.items():
        if target == pod.group or target.startswith(f"{pod.group}/"):
            named = {"namespace": pod.pod.namespace, "name": pod.pod.name, "uid": uid}
            return {"apiVersion": "v1", "kind": "Pod", "metadata": named}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "uid": node}}
