"""Shaping of what leaves by a network device: classes of HTB, and who is in them. Not files, and told of like writes of files."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, TypeAlias

from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.traffic import TcProgram, read_classes, read_disciplines, run_tc
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult

NONE: Final = "none"
"""The value of a write that wants nothing shaped (any more)."""
ROOT: Final = "1:"
WHOLE: Final = "1:1"
ALWAYS: Final = ("1:2", "1:3", "1:4")
PRIORITIES: Final = (1, 2, 3)
"""The classes of the system, of latency-sensitive and of best-effort pods, and which of them goes first."""
_SECONDS: Final = 30
_BY_ADDRESS: Final = {4: ("ip", 49), 6: ("ipv6", 50)}
"""Protocol and preference of the filters by sender's address; preferences are ours alone on our discipline."""
_BY_GROUP: Final = 51

TcBatch: TypeAlias = Callable[[Sequence[str]], None]
"""Makes commands of `tc` in one run; raises `KernelFileError` for the first that fails."""


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """A class of the node's traffic, rates in bytes a second: what it gets in any case, and at most."""

    handle: str
    rate: int
    ceiling: int
    priority: int = 0
    parent: str = WHOLE

    @property
    def text(self) -> str:
        """As the value of a write."""
        return f"class {self.handle} parent {self.parent} rate {self.rate * 8}bit ceil {self.ceiling * 8}bit prio {self.priority}"


def sender_text(address: str, handle: str) -> str:
    """That what leaves from an address is in a class, as the value of a write. Raises ValueError for what is no address."""
    return f"from {ip_address(address)} to {handle}"


def run_batch(commands: Sequence[str]) -> None:
    """Run this machine's `tc` once, without a shell and for at most thirty seconds."""
    try:
        done = subprocess.run(
            ["tc", "-batch", "-"],  # noqa: S607 - found by PATH, as distributions put it in different places
            input="".join(f"{command}\n" for command in commands),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelFileError("tc", f"cannot be run: {error}") from error
    if done.returncode != 0:
        problem = " ".join(done.stderr.split())[:300] or f"ended with {done.returncode}"
        raise KernelFileError("tc", problem)


@dataclass(slots=True)
class TrafficShaping:
    """Brings a device to the classes and senders of one round, all at once; with `plan_only` nothing is changed.

    `device` names it, and raises `KernelFileError` where it cannot be told. What was made and is still there is not made
    again until `refresh` nanoseconds of `clock` have passed, then it is looked at.
    """

    device: Callable[[], str]
    clock: Callable[[], int]
    refresh: int
    plan_only: bool = False
    run: TcProgram = run_tc
    batch: TcBatch = run_batch
    _made: tuple[str, ...] = ()
    _on: str = ""
    _at: int = 0
    _troubles: dict[str, str] = field(default_factory=dict)

    def write_all(self, writes: Sequence[FileWrite]) -> list[FileWriteResult]:
        """Make what all writes of a round say together. Raises nothing: results say it."""
        wanted = tuple(str(one.value) for one in writes if one.value != NONE)
        try:
            device = self.device()
            outcome = self._shape(device, wanted) if wanted else self._clean(device)
        except KernelFileError as error:
            self._made = ()
            missing = "cannot be run" in error.problem
            failed = FileOutcome.UNSUPPORTED if missing else FileOutcome.FAILED
            return [FileWriteResult(one, failed, "tc", problem=str(error)) for one in writes]
        return [FileWriteResult(one, outcome, f"tc {device}") for one in writes]

    def _shape(self, device: str, wanted: tuple[str, ...]) -> FileOutcome:
        same = wanted == self._made and device == self._on
        if same and 0 <= self.clock() - self._at < self.refresh:
            return FileOutcome.REMEMBERED
        classes = self._ours(device)
        self._at = self.clock()
        if same and classes is not None and classes >= _classes(wanted):
            return FileOutcome.EQUAL
        if self.plan_only:
            return FileOutcome.PLANNED
        self.batch(list(_commands(device, wanted, classes)))
        self._made, self._on = wanted, device
        self._by_group(device)
        return FileOutcome.WRITTEN

    def _by_group(self, device: str) -> None:
        """Let the kernel tell pods on the host's network by their groups' `net_cls.classid`, where it can."""
        try:
            self.batch(
                [f"filter replace dev {device} parent {ROOT} protocol all prio {_BY_GROUP} handle 1 cgroup"]
            )
        except KernelFileError as error:
            self._troubles["groups"] = error.problem

    def _clean(self, device: str) -> FileOutcome:
        """Remove what was shaped here, by us or by the process before; what others have shaped is theirs."""
        made, self._made = self._made, ()
        if self._ours(device) is None or not (made or self._left(device)):
            return FileOutcome.EQUAL
        if self.plan_only:
            return FileOutcome.PLANNED
        self.batch([f"qdisc del dev {device} root"])
        return FileOutcome.WRITTEN

    def _left(self, device: str) -> bool:
        """Whether a process before this one has shaped the device: by the classes that are always there, as they are made."""
        there = {one.handle: (one.parent, one.priority) for one in read_classes(device, self.run)}
        return all(
            there.get(handle) == (WHOLE, priority)
            for handle, priority in zip(ALWAYS, PRIORITIES, strict=True)
        )

    def _ours(self, device: str) -> frozenset[str] | None:
        """The handles of the classes below our discipline; None where the device has another one."""
        roots = [one for one in read_disciplines(device, self.run) if one.parent == "root"]
        if not any(one.kind == "htb" and one.handle == ROOT for one in roots):
            return None
        classes = frozenset(one.handle for one in read_classes(device, self.run))
        return classes if WHOLE in classes else None


def _classes(wanted: Sequence[str]) -> frozenset[str]:
    return frozenset(one.split()[1] for one in wanted if one.startswith("class "))


def _commands(device: str, wanted: Sequence[str], there: frozenset[str] | None) -> Sequence[str]:
    """What makes the device so, in the order in which the kernel takes it: filters go before classes that they name."""
    found = []
    if there is None:
        found.append(f"qdisc replace dev {device} root handle {ROOT} htb default 2")
    else:
        found += [
            # A filter that is made and removed: removing what is not there would end the batch.
            line
            for protocol, preference in _BY_ADDRESS.values()
            for line in (
                f"filter add dev {device} parent {ROOT} protocol {protocol} prio {preference} u32 match u32 0 0 flowid {WHOLE}",
                f"filter del dev {device} parent {ROOT} protocol {protocol} prio {preference}",
            )
        ]
    classes = [one.split() for one in wanted if one.startswith("class ")]
    kept = {words[1] for words in classes}
    for _class, handle, _parent, parent, *rates in classes:
        found.append(f"class replace dev {device} parent {parent} classid {handle} htb {' '.join(rates)}")
    found += [
        f"class del dev {device} classid {handle}"
        for handle in sorted((there or frozenset()) - kept, reverse=True)
    ]
    for one in wanted:
        if one.startswith("from "):
            _from, address, _to, handle = one.split()
            found.append(_sender(device, address, handle))
    return found


def _sender(device: str, address: str, handle: str) -> str:
    found = ip_address(address)
    protocol, preference = _BY_ADDRESS[found.version]
    selector = "ip src" if found.version == 4 else "ip6 src"
    return (
        f"filter add dev {device} parent {ROOT} protocol {protocol} prio {preference} u32 match "
        f"{selector} {found}/{found.max_prefixlen} flowid {handle}"
    )
