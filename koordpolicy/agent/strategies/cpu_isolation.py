"""Which pods the kernel's scheduler runs first: group identities, idle groups, cookies of core scheduling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.plan import (
    ALL_PODS,
    BEST_EFFORT,
    BURSTABLE,
    NODE,
    Group,
    Plan,
    Write,
    container_group,
    pod_group,
)
from koordpolicy.agent.strategies.isolation import BE, LS, LSR, SYSTEM, Isolations
from koordpolicy.graph.graph import Facts
from koordpolicy.model.pod_strategies import said_of_cpu, whole_number
from koordpolicy.model.protocol import CORE_SCHED_GROUP_ID, CORE_SCHED_POLICY

WRITER: Final = "group-identity"
COOKIES: Final = "core-scheduling"
IDENTITY_FILE: Final = "cpu.bvt_warp_ns"
IDLE_FILE: Final = "cpu.idle"
COOKIE: Final = "core scheduling cookie"
"""No file: the cookie that the tasks of a group share, by the name of those that share one; empty for none."""
_IDENTITIES: Final = range(-1, 3)
_MECHANISM: Final = "SystemTuning"
_GROUP_IDENTITY: Final = "groupIdentity"
_CORE_SCHEDULING: Final = "coreSched"
_DIRECTORIES: Final = ((BURSTABLE, LS), (BEST_EFFORT, BE))


@dataclass(frozen=True, slots=True)
class IsolatedCPU:
    """The policies of a node on its scheduler."""

    isolations: Isolations

    @property
    def mechanism(self) -> str:
        """What keeps classes apart on CPUs."""
        said = self.isolations.graph.about(_MECHANISM, "", {"node": self.isolations.node}).value(
            "cpuMechanism"
        )
        return str(said or _GROUP_IDENTITY)

    def identity(self, group: str) -> int | None:
        """The identity of a group; None where nobody speaks of it."""
        said = self.isolations.value(group, "cpu", "identity", disabled=0)
        if said is None:
            return None
        return int(said) if self.mechanism == _GROUP_IDENTITY else 0

    def pod_identity(self, pod: Facts) -> int | None:
        """The identity of a pod, which one of class LS may say itself. Raises ValueError for one there is not."""
        said = said_of_cpu(pod["annotations"])
        if said is not None:
            own = whole_number(said, "groupIdentity")
            if own is not None and own not in _IDENTITIES:
                raise ValueError(f"the pod's own group identity {own} is outside -1 to 2")
            on = said.get("enable") is True
            if str(pod["qosLabel"]) == LS and not (on and own is None):
                return own if on else 0
        return self.identity(self.isolations.labelled_or_kubernetes(pod, "cpu"))

    def directories(self) -> Mapping[Group, int | None]:
        """The identities of the groups of Kubernetes' classes; all pods together have none."""
        found: dict[Group, int | None] = {group: self.identity(name) for group, name in _DIRECTORIES}
        known = any(value is not None for value in found.values()) or self.identity(LSR) is not None
        return {ALL_PODS: 0 if known else None, **found}

    def plan(self, pods: Sequence[tuple[Facts, Sequence[str]]]) -> Plan:
        """What is to be written for pods, each with the names of its containers."""
        writes: list[Write] = list(self._switches())
        notes: list[str] = []
        for group, value in self.directories().items():
            writes += _said(IDENTITY_FILE, group, value, f"group identity of {group.name}")
        for group, name in _DIRECTORIES:
            idle = self.isolations.value(name, "cpu", "idle", disabled=False)
            writes += _said(
                IDLE_FILE, group, None if idle is None else int(idle), f"Isolation/{name}: cpu.idle"
            )
        for pod, containers in pods:
            uid = str(pod["uid"])
            try:
                value = self.pod_identity(pod)
            except ValueError as problem:
                notes.append(f"{pod['namespace']}/{pod['name']}: {problem}")
                continue
            reason = f"group identity of a pod of class {pod['qos']}"
            for group in (pod_group(uid), *(container_group(uid, name) for name in containers)):
                writes += _said(IDENTITY_FILE, group, value, reason)
            writes += self._cookies(pod, containers)
        return Plan(tuple(writes), notes=tuple(notes))

    def _switches(self) -> Iterator[Write]:
        """The kernel knows one of both mechanisms at a time: the one that is not wanted goes first."""
        if not any(self.isolations.on(name, "cpu") for name in (LSR, LS, BE)):
            return
        by_cookies = self.mechanism == _CORE_SCHEDULING
        off, on = ("sched_group_identity_enabled", "sched_core")[:: 1 if by_cookies else -1]
        reason = f"SystemTuning.cpuMechanism: {self.mechanism}"
        yield Write(f"kernel.{off}", NODE, 0, reason, COOKIES if by_cookies else WRITER)
        yield Write(f"kernel.{on}", NODE, 1, reason, COOKIES if by_cookies else WRITER)

    def cookie(self, pod: Facts) -> str:
        """The name of those that a pod shares a cookie with; empty for none."""
        labels = pod["labels"]
        kind = labels.get(CORE_SCHED_POLICY, "")
        if self.mechanism != _CORE_SCHEDULING or str(pod["qosLabel"]) == SYSTEM or kind == "none":
            return ""
        group = self.isolations.labelled_or_kubernetes(pod, "cpu")
        if not self.isolations.on(group, "cpu"):
            return ""
        name = str(pod["uid"]) if kind == "exclusive" else f"group-{labels.get(CORE_SCHED_GROUP_ID, '')}"
        return f"{name}-expeller" if self.isolations.value(group, "cpu", "expels") else name

    def _cookies(self, pod: Facts, containers: Sequence[str]) -> Iterator[Write]:
        if self.mechanism != _CORE_SCHEDULING:
            return
        name, uid = self.cookie(pod), str(pod["uid"])
        reason = f"core scheduling: shared by `{name}`" if name else "core scheduling: shared by nobody"
        for container in containers:
            yield Write(COOKIE, container_group(uid, container), name, reason, COOKIES)


def _said(file: str, group: Group, value: int | None, reason: str) -> list[Write]:
    return [] if value is None else [Write(file, group, value, reason, WRITER)]
