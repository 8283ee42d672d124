"""The model's files of CPU time and CPU sets: what they say, and what the kernel lets them be."""

import errno
from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.linux.fake.group import UNLIMITED, Group, GroupTree
from koordpolicy.linux.fake.group_file import GroupFile
from koordpolicy.linux.fake.refusal import KernelRefusal, number, number_or_max
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.model.cpuset import cpuset_text, parse_cpuset
from koordpolicy.model.shares import LEAST_SHARES, LEAST_WEIGHT, MOST_SHARES, MOST_WEIGHT

_LEAST_QUOTA: Final = 1000
_MOST_PERIOD: Final = 1_000_000
_MOST_RUNTIME: Final = (1 << 44) - 1
_MICROSECOND: Final = 1000


def _not_root(group: Group) -> None:
    if group.parent is None:
        raise KernelRefusal(errno.EINVAL)


def _set_shares(tree: GroupTree, group: Group, text: str) -> None:
    del tree
    shares = number(text)
    _not_root(group)
    if shares < 0 or group.idle:
        raise KernelRefusal(errno.EINVAL)
    group.weight = max(LEAST_SHARES, min(shares, MOST_SHARES))


def _set_weight(tree: GroupTree, group: Group, text: str) -> None:
    del tree
    weight = number(text)
    if group.idle:
        raise KernelRefusal(errno.EINVAL)
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise KernelRefusal(errno.ERANGE)
    group.weight = weight


def _set_idle(tree: GroupTree, group: Group, text: str) -> None:
    idle = number(text)
    _not_root(group)
    if idle not in {0, 1}:
        raise KernelRefusal(errno.EINVAL)
    if group.idle and not idle:
        group.weight = 1024 if tree.version is CgroupVersion.V1 else 100
    group.idle = idle


def _set_bandwidth(tree: GroupTree, group: Group, *, quota: int, period: int, burst: int) -> None:
    """As tg_set_cfs_bandwidth and tg_cfs_schedulable_down of kernel/sched/core.c."""
    _not_root(group)
    bad_quota = quota != UNLIMITED and not _LEAST_QUOTA <= quota <= _MOST_RUNTIME
    bad_burst = quota != UNLIMITED and (burst > quota or burst + quota > _MOST_RUNTIME)
    if bad_quota or bad_burst or burst < 0 or not _LEAST_QUOTA <= period <= _MOST_PERIOD:
        raise KernelRefusal(errno.EINVAL)
    before = group.quota, group.period, group.burst
    group.quota, group.period, group.burst = quota, period, burst
    if tree.version is CgroupVersion.V1 and not _schedulable(tree.root, None):
        group.quota, group.period, group.burst = before
        raise KernelRefusal(errno.EINVAL)
    group.left = 0.0 if quota == UNLIMITED else float(quota * _MICROSECOND)


def _schedulable(group: Group, above: float | None) -> bool:
    """Whether no group of version 1 has a larger share of its period than one above it."""
    own = None if group.quota == UNLIMITED else group.quota / group.period
    if own is not None and above is not None and own > above:
        return False
    bound = above if own is None else own
    return all(_schedulable(child, bound) for child in group.children.values())


def _set_quota(tree: GroupTree, group: Group, text: str) -> None:
    quota = number(text)
    _set_bandwidth(
        tree, group, quota=UNLIMITED if quota < 0 else quota, period=group.period, burst=group.burst
    )


def _set_period(tree: GroupTree, group: Group, text: str) -> None:
    _set_bandwidth(tree, group, quota=group.quota, period=number(text), burst=group.burst)


def _set_burst(tree: GroupTree, group: Group, text: str) -> None:
    _set_bandwidth(tree, group, quota=group.quota, period=group.period, burst=number(text))


def _set_max(tree: GroupTree, group: Group, text: str) -> None:
    quota, *rest = text.split() or [""]
    if len(rest) > 1:
        raise KernelRefusal(errno.EINVAL)
    period = number(rest[0]) if rest else group.period
    found = number_or_max(quota)
    _set_bandwidth(tree, group, quota=found, period=period, burst=group.burst)


def _max(tree: GroupTree, group: Group) -> str:
    del tree
    return f"{'max' if group.quota == UNLIMITED else group.quota} {group.period}"


def _stat_v1(tree: GroupTree, group: Group) -> str:
    del tree
    return (
        f"nr_periods {group.periods}\nnr_throttled {group.throttled}\nthrottled_time {group.throttled_time}\n"
        f"nr_bursts {group.bursts}\nburst_time 0"
    )


def _stat_v2(tree: GroupTree, group: Group) -> str:
    del tree
    used = group.used // _MICROSECOND
    bandwidth = (
        f"\nnr_periods {group.periods}\nnr_throttled {group.throttled}"
        f"\nthrottled_usec {group.throttled_time // _MICROSECOND}\nnr_bursts {group.bursts}\nburst_usec 0"
    )
    return f"usage_usec {used}\nuser_usec {used}\nsystem_usec 0{bandwidth if group.parent else ''}"


def _set_cpus(tree: GroupTree, group: Group, text: str) -> None:
    if group.parent is None:
        raise KernelRefusal(errno.EACCES)
    try:
        cpus = parse_cpuset(text)
    except ValueError:
        raise KernelRefusal(errno.EINVAL) from None
    if not cpus <= tree.all_cpus:
        raise KernelRefusal(errno.EINVAL)
    if tree.version is CgroupVersion.V1:
        if any(not (child.cpus or frozenset()) <= cpus for child in group.children.values()):
            raise KernelRefusal(errno.EBUSY)
        if not cpus <= (group.parent.cpus or frozenset()):
            raise KernelRefusal(errno.EACCES)
        if not cpus and group.pids:
            raise KernelRefusal(errno.ENOSPC)
    group.cpus = cpus or None


def _set_mems(tree: GroupTree, group: Group, text: str) -> None:
    if group.parent is None:
        raise KernelRefusal(errno.EACCES)
    try:
        mems = parse_cpuset(text)
    except ValueError:
        raise KernelRefusal(errno.EINVAL) from None
    if not mems <= (tree.root.mems or frozenset()):
        raise KernelRefusal(errno.EINVAL)
    group.mems = mems or None


def _shown(get: Callable[[Group], object]) -> Callable[[GroupTree, Group], str]:
    return lambda tree, group: str(get(group))


_WEIGHT_IDLE: Final = 3
"""cpu.shares of an idle group as it is shown (WEIGHT_IDLEPRIO of kernel/sched/sched.h)."""

V1_CPU: Final[Mapping[str, GroupFile]] = {
    "cpu.shares": GroupFile(_shown(lambda one: _WEIGHT_IDLE if one.idle else one.weight), _set_shares),
    "cpu.cfs_quota_us": GroupFile(_shown(lambda one: one.quota), _set_quota),
    "cpu.cfs_period_us": GroupFile(_shown(lambda one: one.period), _set_period),
    "cpu.cfs_burst_us": GroupFile(_shown(lambda one: one.burst), _set_burst),
    "cpu.idle": GroupFile(_shown(lambda one: one.idle), _set_idle),
    "cpu.stat": GroupFile(_stat_v1),
}
V2_CPU: Final[Mapping[str, GroupFile]] = {
    "cpu.weight": GroupFile(_shown(lambda one: 0 if one.idle else one.weight), _set_weight, root=False),
    "cpu.max": GroupFile(_max, _set_max, root=False),
    "cpu.max.burst": GroupFile(_shown(lambda one: one.burst), _set_burst, root=False),
    "cpu.idle": GroupFile(_shown(lambda one: one.idle), _set_idle, root=False),
}
V1_CPUACCT: Final[Mapping[str, GroupFile]] = {"cpuacct.usage": GroupFile(_shown(lambda one: one.used))}
V2_STAT: Final[Mapping[str, GroupFile]] = {"cpu.stat": GroupFile(_stat_v2)}
V1_CPUSET: Final[Mapping[str, GroupFile]] = {
    "cpuset.cpus": GroupFile(_shown(lambda one: cpuset_text(one.cpus or ())), _set_cpus),
    "cpuset.mems": GroupFile(_shown(lambda one: cpuset_text(one.mems or ())), _set_mems),
    "cpuset.effective_cpus": GroupFile(lambda tree, one: cpuset_text(tree.effective_cpus(one))),
}
V2_CPUSET: Final[Mapping[str, GroupFile]] = {
    "cpuset.cpus": GroupFile(_shown(lambda one: cpuset_text(one.cpus or ())), _set_cpus, root=False),
    "cpuset.mems": GroupFile(_shown(lambda one: cpuset_text(one.mems or ())), _set_mems, root=False),
    "cpuset.cpus.effective": GroupFile(lambda tree, one: cpuset_text(tree.effective_cpus(one))),
}
