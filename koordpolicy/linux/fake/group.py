"""The state of one group of the model, and the trees of groups."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.linux.files.kernel_file import CgroupVersion

DEFAULT_SHARES: Final = 1024
DEFAULT_WEIGHT: Final = 100
PERIOD: Final = 100_000
"""Microseconds; the kernel's default (default_cfs_period of kernel/sched/fair.c)."""
UNLIMITED: Final = -1


@dataclass(slots=True)
class Group:
    """A group in one hierarchy. Of its fields only those count whose controller stands in that hierarchy.

    `weight` is in shares in version 1 and in weights in version 2. Quota, period and burst in microseconds, memory in
    bytes, times in nanoseconds. `cpus` None: not set; version 2 then has its parent's, version 1 none.
    """

    path: str
    parent: "Group | None"
    weight: int
    quota: int = UNLIMITED
    period: int = PERIOD
    burst: int = 0
    idle: int = 0
    cpus: frozenset[int] | None = None
    mems: frozenset[int] | None = None
    limit: int = UNLIMITED
    low: int = 0
    min: int = 0
    high: int = UNLIMITED
    oom_group: int = 0
    extra: dict[str, str] = field(default_factory=dict)
    """Files that the model only keeps, by name: those of other kernels, and block I/O."""
    children: dict[str, "Group"] = field(default_factory=dict)
    pids: set[int] = field(default_factory=set)

    used: int = 0
    """CPU time of the group and all below it."""
    periods: int = 0
    throttled: int = 0
    throttled_time: int = 0
    bursts: int = 0
    left: float = 0.0
    """Nanoseconds that the group may still run in this period."""
    exhausted: bool = False
    ran: bool = False
    anonymous: int = 0
    cache: int = 0
    oom_kills: int = 0
    high_events: int = 0

    def below(self) -> Iterator["Group"]:
        """The group and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.below()

    def above(self) -> Iterator["Group"]:
        """The group and all above it, children first."""
        one: Group | None = self
        while one is not None:
            yield one
            one = one.parent

    @property
    def memory(self) -> int:
        """Bytes of the group and all below it."""
        return sum(one.anonymous + one.cache for one in self.below())

    @property
    def inactive_cache(self) -> int:
        """Bytes of page cache of the group and all below it."""
        return sum(one.cache for one in self.below())


class GroupTree:
    """The groups of one hierarchy. `mount` is its directory below the cgroup root, `all_cpus` the machine's."""

    def __init__(
        self,
        mount: str,
        version: CgroupVersion,
        controllers: frozenset[str],
        cpus: frozenset[int],
        nodes: frozenset[int],
    ) -> None:
        self.mount = mount
        self.version = version
        self.controllers = controllers
        self.all_cpus = cpus
        self.root = Group("", None, self._weight(), cpus=cpus, mems=nodes)

    def _weight(self) -> int:
        return DEFAULT_SHARES if self.version is CgroupVersion.V1 else DEFAULT_WEIGHT

    def find(self, path: str) -> Group | None:
        """The group of a path; None where there is none."""
        one: Group | None = self.root
        for part in path.split("/") if path else ():
            one = one.children.get(part) if one is not None else None
        return one

    def make(self, parent: Group, name: str) -> Group:
        """A new group, as the kernel makes one."""
        path = f"{parent.path}/{name}" if parent.path else name
        parent.children[name] = group = Group(path, parent, self._weight())
        return group

    def effective_cpus(self, group: Group) -> frozenset[int]:
        """The CPUs that the group's tasks run on."""
        if group.parent is None:
            return self.all_cpus
        above = self.effective_cpus(group.parent)
        if self.version is CgroupVersion.V1:
            return group.cpus or frozenset()
        return (above & group.cpus or above) if group.cpus else above
