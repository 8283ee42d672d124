"""The model's files of memory: what they say, and what the kernel lets them be."""

import errno
from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.linux.fake.group import UNLIMITED, Group, GroupTree
from koordpolicy.linux.fake.group_file import GroupFile
from koordpolicy.linux.fake.refusal import KernelRefusal, number, number_or_max

PAGE: Final = 4096
_NO_LIMIT_V1: Final = (1 << 63) - PAGE
"""What version 1 shows for no limit: PAGE_COUNTER_MAX pages."""


def _pages(amount: int) -> int:
    return amount // PAGE * PAGE


def _set_limit_v1(tree: GroupTree, group: Group, text: str) -> None:
    del tree
    limit = number(text)
    if group.parent is None or limit < UNLIMITED:
        raise KernelRefusal(errno.EINVAL)
    if limit != UNLIMITED and limit < _NO_LIMIT_V1:
        limit = _pages(limit)
        # What page cache there is goes; what is left cannot.
        if limit < group.memory - group.inactive_cache:
            raise KernelRefusal(errno.EBUSY)
        group.limit = limit
    else:
        group.limit = UNLIMITED


def _set_bytes(name: str) -> Callable[[GroupTree, Group, str], None]:
    def write(tree: GroupTree, group: Group, text: str) -> None:
        del tree
        found = number_or_max(text)
        setattr(group, name, found if found == UNLIMITED else _pages(found))

    return write


def _set_oom_group(tree: GroupTree, group: Group, text: str) -> None:
    del tree
    found = number(text)
    if found not in {0, 1}:
        raise KernelRefusal(errno.EINVAL)
    group.oom_group = found


def _or_max(amount: int) -> str:
    return "max" if amount == UNLIMITED else str(amount)


def _stat_v1(tree: GroupTree, group: Group) -> str:
    del tree
    anonymous = sum(one.anonymous for one in group.below())
    total = group.inactive_cache
    return (
        f"cache {group.cache}\nrss {group.anonymous}\ninactive_anon 0\nactive_anon {group.anonymous}\n"
        f"inactive_file {group.cache}\nactive_file 0\nunevictable 0\n"
        f"total_cache {total}\ntotal_rss {anonymous}\ntotal_inactive_anon 0\ntotal_active_anon {anonymous}\n"
        f"total_inactive_file {total}\ntotal_active_file 0\ntotal_unevictable 0"
    )


def _stat_v2(tree: GroupTree, group: Group) -> str:
    del tree
    anonymous = sum(one.anonymous for one in group.below())
    total = group.inactive_cache
    return (
        f"anon {anonymous}\nfile {total}\nshmem 0\ninactive_anon 0\nactive_anon {anonymous}\n"
        f"inactive_file {total}\nactive_file 0\nunevictable 0"
    )


def _numa_stat(tree: GroupTree, group: Group) -> str:
    pages = group.memory // PAGE
    node = min(tree.root.mems or {0})
    return f"total={pages} N{node}={pages}\nhierarchical_total={pages} N{node}={pages}"


def _numa_stat_v2(tree: GroupTree, group: Group) -> str:
    node = min(tree.root.mems or {0})
    anonymous = sum(one.anonymous for one in group.below())
    return f"anon N{node}={anonymous}\nfile N{node}={group.inactive_cache}\nunevictable N{node}=0"


def _events(tree: GroupTree, group: Group) -> str:
    del tree
    kills = sum(one.oom_kills for one in group.below())
    return f"low 0\nhigh {group.high_events}\nmax 0\noom {kills}\noom_kill {kills}\noom_group_kill 0"


def _shown(get: Callable[[Group], object]) -> Callable[[GroupTree, Group], str]:
    return lambda tree, group: str(get(group))


V1_MEMORY: Final[Mapping[str, GroupFile]] = {
    "memory.limit_in_bytes": GroupFile(
        _shown(lambda one: _NO_LIMIT_V1 if one.limit == UNLIMITED else one.limit), _set_limit_v1
    ),
    "memory.usage_in_bytes": GroupFile(_shown(lambda one: one.memory)),
    "memory.stat": GroupFile(_stat_v1),
    "memory.numa_stat": GroupFile(_numa_stat),
    "memory.oom_control": GroupFile(
        _shown(lambda one: f"oom_kill_disable 0\nunder_oom 0\noom_kill {one.oom_kills}")
    ),
}
V2_MEMORY: Final[Mapping[str, GroupFile]] = {
    "memory.max": GroupFile(_shown(lambda one: _or_max(one.limit)), _set_bytes("limit"), root=False),
    "memory.high": GroupFile(_shown(lambda one: _or_max(one.high)), _set_bytes("high"), root=False),
    "memory.low": GroupFile(_shown(lambda one: _or_max(one.low)), _set_bytes("low"), root=False),
    "memory.min": GroupFile(_shown(lambda one: _or_max(one.min)), _set_bytes("min"), root=False),
    "memory.oom.group": GroupFile(_shown(lambda one: one.oom_group), _set_oom_group, root=False),
    "memory.current": GroupFile(_shown(lambda one: one.memory), root=False),
    "memory.stat": GroupFile(_stat_v2),
    "memory.numa_stat": GroupFile(_numa_stat_v2),
    "memory.events": GroupFile(_events, root=False),
}
