"""CPU burst: which containers may use more than their limits now, by what they saved and how busy the node is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from koordpolicy.agent.plan import ChildGrowth, Group, Plan, Write, container_group, pod_group
from koordpolicy.agent.strategies.shared_pool import shared_pool_state
from koordpolicy.agent.unchanged import read_facts
from koordpolicy.algorithms.container_resources import UNLIMITED, quota_of
from koordpolicy.algorithms.cpu_burst import (
    PoolState,
    QuotaSteps,
    Step,
    TokenLimits,
    burst_allowed,
    next_quota,
    next_step,
    saved_burst,
    tokens_after,
)
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.pod_strategies import said_of_burst, whole_number
from koordpolicy.model.reading import Json
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "CPUBurst"
WRITER: Final = "cpu-burst"
BURST_FILE: Final = "cpu.cfs_burst_us"
QUOTA_FILE: Final = "cpu.cfs_quota_us"
_SAVES_UP: Final = ("cpuBurstOnly", "auto")
_RAISES_QUOTAS: Final = ("cfsQuotaBurstOnly", "auto")
_START: Final = 0.5
"""Share of its tokens up to which a container begins, by chance: so those that start together do not stop together."""


@dataclass(frozen=True, slots=True)
class BurstRules:
    """What holds for one pod: whether unused time is saved up, whether quotas grow, and by how much."""

    policy: str
    burst: float
    tokens: TokenLimits
    steps: QuotaSteps

    @property
    def saves_up(self) -> bool:
        """Whether unused time may be used later."""
        return self.policy in _SAVES_UP

    @property
    def raises_quotas(self) -> bool:
        """Whether quotas grow where containers are held back."""
        return self.policy in _RAISES_QUOTAS


class ContainerCPU(NamedTuple):
    """A running container: its limit and use in millicores, its quota, the share of periods in which it was held back.

    Use and share are None where they were not measured lately, the quota where it cannot be read. `sized` is the quota that
    hooks give it, as on fast CPUs; None where they give it none: then it has that of its limit.
    """

    limit: int
    quota: int | None
    used: int | None = None
    throttled: float | None = None
    sized: int | None = None

    @property
    def base(self) -> int:
        """Its quota without bursts."""
        return quota_of(self.limit) if self.sized is None else self.sized


class PodCPU(NamedTuple):
    """A pod as its record has it, its quota, and its running containers by name."""

    record: Facts
    quota: int | None
    containers: Mapping[str, ContainerCPU] = MappingProxyType({})


class Tokens(NamedTuple):
    """What a container has saved up, by which limits, and when that was counted, in nanoseconds since 1970."""

    left: int
    limits: TokenLimits
    at: int


TokensOf = Mapping[tuple[str, str], Tokens]
"""By a pod's UID and a container's name."""


@dataclass(slots=True)
class KnownPod:
    """A pod's rules, and what its groups save up by them, each with what it was found by."""

    found_by: tuple[Any, ...]
    rules: BurstRules | None
    saved_by: tuple[Any, ...] = ()
    saved: Sequence[Write] = ()


KnownPods = dict[str, KnownPod]
"""By a pod's UID."""


class QuotaStep(NamedTuple):
    """What becomes of one container's quota; no target for a container without a limit."""

    step: Step
    target: int | None = None


class CPUBursts:
    """The policies of one revision on bursts, for a node. Keeps nothing: what is saved up comes in and goes out.

    `chance` gives numbers from 0 to 1. In `known` stands what was found of pods, who need not be asked about again.
    """

    def __init__(self, graph: RuleGraph, chance: Callable[[], float], known: KnownPods | None = None) -> None:
        self._graph = graph
        self._chance = chance
        self._known: KnownPods = {} if known is None else known

    def rules(self, pod: Facts, node: Facts, now: int) -> BurstRules | None:
        """What holds for a pod, its own annotation over its node's policy; None where its containers may not burst."""
        about = self._graph.about(KIND, "", {"node": node, "pod": pod, "now": TIMES.timestamp(now)})
        if not about.value("eligible"):
            return None
        period, ceiling = about.value("quota.period"), about.value("quota.ceiling")
        growth, shrinkage = about.value("quota.growth"), about.value("quota.shrinkage")
        rules = BurstRules(
            about.value("policy") or "none",
            (about.value("burst") or 0.0) / 100,
            TokenLimits(
                -1 if period is None else period.ns / NANOSECONDS,
                100.0 if ceiling is None else ceiling,
                about.value("quota.spendsFrom"),
                about.value("quota.savesBelow"),
            ),
            QuotaSteps(
                100.0 if ceiling is None else ceiling,
                1.0 if growth is None else growth / 100,
                1.0 if shrinkage is None else shrinkage / 100,
            ),
        )
        return _over(rules, said_of_burst(pod["annotations"]))

    def _rules(self, pod: Facts, node: Facts, now: int) -> BurstRules | None:
        """The same, asked anew only where something that policies read is another."""
        read = read_facts(self._graph, (KIND,))
        if not read.timeless:
            return self.rules(pod, node, now)
        key = (self._graph.digest, read.values("node", node), read.values("pod", pod), pod["annotations"])
        uid = str(pod["uid"])
        known = self._known.get(uid)
        if known is None or known.found_by != key:
            known = self._known[uid] = KnownPod(key, self.rules(pod, node, now))
        return known.rules

    def _saved(self, pod: PodCPU, rules: BurstRules) -> Sequence[Write]:
        """`saved_writes`, made anew only where something that they follow from is another."""
        known = self._known.get(str(pod.record["uid"]))
        if known is None or known.rules is not rules:
            return saved_writes(pod, rules)
        key = (pod.quota, *((name, one.limit, one.quota, one.sized) for name, one in pod.containers.items()))
        if known.saved_by != key:
            known.saved_by, known.saved = key, saved_writes(pod, rules)
        return known.saved

    def pool(self, node: Facts, processors: int, used: int | None, now: int) -> PoolState:
        """How busy the shared CPUs are; `used` is the node's use lately, None for unknown."""
        about = self._graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
        threshold, cooling = about.value("sharePool.threshold"), about.value("sharePool.cooling")
        if threshold is None:
            return PoolState.IDLE
        return shared_pool_state(
            self._graph,
            processors,
            used,
            node["pods"],
            threshold / 100,
            1.0 if cooling is None else cooling / 100,
        )

    def plan(
        self, node: Facts, pods: Sequence[PodCPU], pool: PoolState, tokens: TokensOf, now: int
    ) -> tuple[Plan, TokensOf]:
        """What is to be written for all pods, and the tokens from now on. Raises `CelError` where policy cannot decide."""
        writes: list[Write] = []
        kept: dict[tuple[str, str], Tokens] = {}
        holds: dict[tuple[str, Group], str] = {}
        if not self._graph.subjects(KIND):
            return Plan(), kept
        for pod in pods:
            rules = self._rules(pod.record, node, now)
            if rules is not None:
                writes += self._saved(pod, rules)
                writes += self._quotas(pod, rules, pool, tokens, kept, now)
                if rules.raises_quotas:
                    holds |= dict.fromkeys(_quotas_of(pod), WRITER)
        for gone in self._known.keys() - {str(pod.record["uid"]) for pod in pods}:
            del self._known[gone]
        return Plan(tuple(writes), holds=holds), kept

    def _quotas(
        self,
        pod: PodCPU,
        rules: BurstRules,
        pool: PoolState,
        tokens: TokensOf,
        kept: dict[tuple[str, str], Tokens],
        now: int,
    ) -> list[Write]:
        uid, of_pod = str(pod.record["uid"]), pod.quota
        writes: list[Write] = []
        for name, container in pod.containers.items():
            if container.limit <= 0 or container.quota is None:
                continue
            if not rules.raises_quotas and container.quota <= container.base:
                continue  # it never grew; smaller ones are others' business
            kept[uid, name] = saved = self._counted(tokens.get((uid, name)), rules.tokens, container, now)
            found = quota_step(rules, container, pool, allowed=burst_allowed(saved.left, rules.tokens))
            if container.quota == UNLIMITED:
                # It had no part in the pod's quota, which grows by it only as far as it has to hold it.
                writes += _first_quota(uid, name, of_pod, found)
                of_pod = _holding(of_pod, found.target)
                continue
            writes += quota_writes(uid, name, container.quota, of_pod, found)
            if of_pod is not None and of_pod > 0 and found.target is not None:
                of_pod += found.target - container.quota
        return writes

    def _counted(
        self, tokens: Tokens | None, limits: TokenLimits, container: ContainerCPU, now: int
    ) -> Tokens:
        if tokens is None or (tokens.limits is not limits and tokens.limits != limits):
            return Tokens(int(self._chance() * _START * limits.capacity), limits, now)
        elapsed = max(now - tokens.at, 0) / NANOSECONDS
        percent = 100 if container.used is None else container.used * 100 // container.limit
        if elapsed < 1:
            return tokens
        return Tokens(tokens_after(tokens.left, limits, percent, elapsed), limits, now)


def quota_step(rules: BurstRules, container: ContainerCPU, pool: PoolState, *, allowed: bool) -> QuotaStep:
    """What becomes of a container's quota; `allowed` says whether it has saved up enough."""
    if container.limit <= 0 or container.quota is None:
        return QuotaStep(Step.SKIP)
    step = next_step(bursts=rules.raises_quotas, allowed=allowed, throttled=container.throttled, pool=pool)
    return QuotaStep(step, next_quota(step, container.base, container.quota, rules.steps))


def _first_quota(uid: str, name: str, of_pod: int | None, found: QuotaStep) -> list[Write]:
    """The writes for a container that has none: its own, after its pod's where that cannot hold it."""
    own = quota_writes(uid, name, UNLIMITED, None, found)
    holding = _holding(of_pod, found.target)
    if not own or of_pod is None or holding is None or holding == of_pod:
        return own
    child = ChildGrowth(container_group(uid, name), holding - of_pod)
    return [
        Write(QUOTA_FILE, pod_group(uid), holding, f"CPU burst: holds `{name}`", WRITER, child=child),
        *own,
    ]


def quota_writes(uid: str, name: str, current: int, pod_quota: int | None, found: QuotaStep) -> list[Write]:
    """The writes that bring a container to its quota: the pod's grows before the container's, and shrinks after it."""
    if found.target is None or found.target == current:
        return []
    reason = f"CPU burst: quota {found.step} from {current}"
    own = [Write(QUOTA_FILE, container_group(uid, name), found.target, reason, WRITER)]
    if pod_quota is None or pod_quota <= 0:
        return own
    delta = found.target - current
    parent = Write(QUOTA_FILE, pod_group(uid), pod_quota + delta, reason, WRITER)
    parents = [replace(parent, child=ChildGrowth(container_group(uid, name), delta))]
    return parents + own if delta > 0 else own + parents


def _holding(of_pod: int | None, target: int | None) -> int | None:
    """The quota of a pod that holds that of a container: the kernel takes no larger one below it."""
    return of_pod if of_pod is None or of_pod <= 0 or target is None else max(of_pod, target)


def _quotas_of(pod: PodCPU) -> Iterator[tuple[str, Group]]:
    """The quotas that grow and shrink with a pod's bursts: nobody else should set them meanwhile."""
    uid = str(pod.record["uid"])
    limited = [name for name, one in pod.containers.items() if one.limit > 0]
    yield from ((QUOTA_FILE, container_group(uid, name)) for name in limited)
    if limited:
        yield QUOTA_FILE, pod_group(uid)


def saved_writes(pod: PodCPU, rules: BurstRules) -> list[Write]:
    """How much unused time the containers of a pod, and the pod, may save up.

    Kernels other than Alibaba's take no more than a group's quota, so that is what they get
    (Documentation/scheduler/sched-bwc.rst): of quotas without bursts, which no later one is less than. A group without
    a quota gets nothing: the kernel would take anything there, and then no quota below it.
    """
    uid = str(pod.record["uid"])
    wanted = {
        name: saved_burst(one.limit, rules.burst) if rules.saves_up else 0
        for name, one in pod.containers.items()
    }
    reason = f"CPU burst: policy {rules.policy}"
    found = {
        name: _within(amount, max(pod.containers[name].base, 0), pod.containers[name].quota)
        for name, amount in wanted.items()
    }
    amounts, leasts = ([each[at] for each in found.values()] for at in (0, 1))
    whole = _within(sum(amounts), sum(leasts), pod.quota)
    groups = [(container_group(uid, name), each) for name, each in found.items()]
    return [
        Write(BURST_FILE, group, amount, reason, WRITER, otherwise=least)
        for group, (amount, least) in [*groups, (pod_group(uid), whole)]
    ]


def _within(wanted: int, base: int, quota: int | None) -> tuple[int, int]:
    """What a group may save up, and what where the kernel takes no more than its quota, now and without bursts."""
    if quota == UNLIMITED:
        return 0, 0
    least = min(wanted, base) if quota is None else min(wanted, base, quota)
    # What a grown quota leaves room for would be in the way when it shrinks.
    return (least if quota is not None and wanted <= quota else wanted), least


def _over(rules: BurstRules, said: Json) -> BurstRules:
    """The rules with what a pod says over them."""
    policy, burst = said.get("policy"), whole_number(said, "cpuBurstPercent")
    ceiling, period = (
        whole_number(said, "cfsQuotaBurstPercent"),
        whole_number(said, "cfsQuotaBurstPeriodSeconds"),
    )
    return BurstRules(
        policy if isinstance(policy, str) and policy else rules.policy,
        rules.burst if burst is None else burst / 100,
        replace(
            rules.tokens,
            period=rules.tokens.period if period is None else period,
            ceiling=rules.tokens.ceiling if ceiling is None else ceiling,
        ),
        replace(rules.steps, ceiling=rules.steps.ceiling if ceiling is None else ceiling),
    )
