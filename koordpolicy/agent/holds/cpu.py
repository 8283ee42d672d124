"""What holds back a pod's CPU: suppression, quotas, CPU sets, bursts, the kernel's scheduler, others that suffer."""

from collections.abc import Iterator
from typing import Final

from koordpolicy.agent.holds.hold import AskedDecision, HeldPod, Hold, HoldState, cores
from koordpolicy.agent.hooks.containers import KIND as HOOK
from koordpolicy.agent.hooks.containers import HookedNumbers, hook_roots, listed_containers, numbers_by_writer
from koordpolicy.agent.strategies.cpu_burst import KIND as BURST
from koordpolicy.agent.strategies.cpu_burst import BurstRules, CPUBursts
from koordpolicy.agent.strategies.cpu_isolation import IsolatedCPU
from koordpolicy.agent.strategies.interference import EVICT, SUPPRESS
from koordpolicy.agent.strategies.interference import KIND as INTERFERENCE
from koordpolicy.agent.strategies.isolation import BE, LS, LSR, Isolations
from koordpolicy.agent.strategies.isolation import KIND as ISOLATION
from koordpolicy.agent.strategies.suppression import KIND as SUPPRESSION
from koordpolicy.agent.strategies.suppression import CPUSuppression, SuppressionAction
from koordpolicy.algorithms.container_resources import PERIOD
from koordpolicy.algorithms.cpu_burst import PoolState
from koordpolicy.algorithms.cpu_pools import CPUChoice
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.facts.pod import container_facts
from koordpolicy.model.pod import owned_cpus
from koordpolicy.model.protocol import CPU, CPU_BURST, CPU_QOS

_CHOSEN: Final = {
    CPUChoice.SHARED_OF_ZONES: "the shared CPUs of its NUMA zones",
    CPUChoice.BEST_EFFORT_OF_ZONES: "the CPUs for best-effort work of its NUMA zones",
    CPUChoice.SHARED: "the CPUs that pods share, without those that others own",
    CPUChoice.SYSTEM: "the CPUs that the node keeps for itself",
}
_KERNEL: Final = "how often it was throttled, and for how long (`cpu.stat` of its control group)"


def suppression(held: HeldPod) -> Hold:
    """How much CPU all best-effort pods of the node together may use."""
    title, graph = "CPU suppression", held.graph
    if not graph.subjects(SUPPRESSION):
        return Hold(title, SUPPRESSION, HoldState.OFF, "No policy speaks of it.")
    decided = CPUSuppression(graph).decide(held.node, held.now)
    capacity = int(held.node.get("capacity.cpu", 0))  # type: ignore[call-overload]  # a record holds anything
    if decided.outcome is SuppressionAction.SUPPRESS:
        how = "a set of CPUs" if decided.mechanism == "cpuset" else "a quota"
        least = "" if decided.target > 0 else ", which leaves them the least that policy keeps for them"
        says = f"By the last report all best-effort pods of the node together may use {cores(decided.target)} of {cores(capacity)}, by {how}{least}."
        state = HoldState.HOLDS
    elif decided.outcome is SuppressionAction.KEEP:
        says, state = f"What was last written for best-effort pods stays: {decided.reason}.", HoldState.MAY
    else:
        says, state = (
            f"Best-effort pods may use all CPUs that nobody owns: {decided.reason}.",
            HoldState.SPARES,
        )
    if not held.best_effort:
        says = f"It is no best-effort pod, and is left alone. {says}"
        state = HoldState.SPARES
    return Hold(
        title,
        SUPPRESSION,
        state,
        says,
        held.asked(
            f"{SUPPRESSION}.target",
            f"{SUPPRESSION}.mechanism",
            f"{SUPPRESSION}.minimum",
            *(
                ()
                if state is HoldState.HOLDS
                else (f"{SUPPRESSION}.enabled", f"{SUPPRESSION}.onMissing.action")
            ),
        ),
        unseen="what the agent measures now, by which it decides each second, and which CPUs or quota it wrote last"
        if held.best_effort
        else "",
    )


def quota(held: HeldPod) -> Hold:
    """How much time its containers get at most in each period of the kernel, and as whom that is said."""
    said = _numbers(held)
    parts = []
    limited = False
    for name, numbers in said.whole.containers.items():
        limit = next((one.limits.get(CPU, 0) for one in held.pod.containers if one.name == name), 0)
        if numbers.quota is not None:
            limited |= numbers.quota > 0
            amount = cores(1000 * numbers.quota / PERIOD) if numbers.quota > 0 else "no quota"
            parts.append(f"`{name}` has {amount} by {_writer(said, name, 'quota')}")
        elif limit > 0:
            limited = True
            parts.append(f"`{name}` has {cores(limit)}, its limit, from the kubelet")
        else:
            parts.append(f"`{name}` has no limit, and no quota")
    return Hold(
        "Quota",
        HOOK,
        HoldState.HOLDS if limited else HoldState.SPARES,
        f"{'; '.join(parts) or 'It has no containers'}.",
        _of_hooks(held, "cpuLimit"),
        unseen=_KERNEL if limited else "",
    )


def cpus(held: HeldPod) -> Hold:
    """Which CPUs its containers run on."""
    said = _numbers(held)
    parts, held_to = [], False
    for name, numbers in said.whole.containers.items():
        choice = numbers.cpus
        if choice is CPUChoice.OWNED:
            own = cpuset_text(owned_cpus(held.pod.annotations))
            parts.append(f"`{name}` runs on CPUs {own}, its own")
        elif choice in _CHOSEN:
            parts.append(f"`{name}` runs on {_CHOSEN[choice]}")
        elif choice is CPUChoice.INHERITED:
            parts.append(f"`{name}` runs where all best-effort pods do")
        else:
            parts.append(f"`{name}` is left where the kubelet has put it")
        held_to |= choice is CPUChoice.OWNED or choice in _CHOSEN
    return Hold(
        "CPU set",
        HOOK,
        HoldState.HOLDS if held_to else HoldState.SPARES,
        f"{'; '.join(parts) or 'It has no containers'}.",
        _of_hooks(held, "cpus"),
        unseen="which CPUs these are now (`cpuset.cpus`)" if held_to else "",
    )


def burst(held: HeldPod) -> Hold:
    """Whether its quota gives way where it would be throttled."""
    title, graph = "CPU burst", held.graph
    if not graph.subjects(BURST):
        return Hold(title, BURST, HoldState.OFF, "No policy speaks of it: quotas hold as they are.")
    bursts = CPUBursts(graph, lambda: 0.0)
    rules = bursts.rules(held.facts, held.node, held.now)
    fields = ["policy", "eligible"]
    state = HoldState.SPARES
    if rules is None:
        says, state = "Its containers may not burst: their quotas hold as they are.", HoldState.OFF
    elif not rules.saves_up and not rules.raises_quotas:
        says, state = "Nothing bursts: quotas hold as they are.", HoldState.OFF
    else:
        says = " ".join(_of_bursts(rules))
        fields += ["burst"] * rules.saves_up
        if rules.raises_quotas:
            fields += ["quota.ceiling", "quota.growth", "sharePool.threshold"]
            pool = _pool(bursts, held)
            says += f" {_POOLS[pool]}"
            state = {PoolState.OVERLOAD: HoldState.HOLDS, PoolState.UNKNOWN: HoldState.MAY}.get(pool, state)
    own = held.own(CPU_BURST)
    unseen = "quotas now, and what each container has saved up" if state is not HoldState.OFF else ""
    return Hold(title, BURST, state, says, held.asked(*(f"{BURST}.{one}" for one in fields)), own, unseen)


_POOLS: Final = {
    PoolState.IDLE: "By the last report the shared CPUs have room for that.",
    PoolState.COOLING: "By the last report the shared CPUs are nearly too busy: quotas grow no further.",
    PoolState.OVERLOAD: "By the last report the shared CPUs are too busy: quotas shrink back.",
    PoolState.UNKNOWN: "Whether the shared CPUs have room for that was not reported lately.",
}


def _of_bursts(rules: BurstRules) -> Iterator[str]:
    if rules.saves_up:
        yield f"Containers save up CPU time that they do not use, up to {100 * rules.burst:g}% of their limits, and use it later."
    if rules.raises_quotas:
        yield f"Where one is throttled, its quota grows up to {rules.steps.ceiling:g}% of its limit."


def _pool(bursts: CPUBursts, held: HeldPod) -> PoolState:
    capacity = held.node.get("capacity.cpu", 0)
    used = held.node.get("usage.total.cpu")
    return bursts.pool(
        held.node,
        int(capacity) // 1000,  # type: ignore[call-overload]  # a record holds anything
        None if used is None else int(used),  # type: ignore[call-overload]
        held.now,
    )


def kernel_scheduler(held: HeldPod) -> Hold:
    """Before and after whom the kernel runs its tasks: group identity, idle groups, core scheduling."""
    title = "Turns on CPUs"
    isolations = Isolations(held.graph, held.node, held.now)
    isolated = IsolatedCPU(isolations)
    group = isolations.labelled_or_kubernetes(held.facts, "cpu")
    value = isolated.pod_identity(held.facts)
    kubernetes = BE if held.best_effort else LS if held.facts["kubernetesQoS"] == "Burstable" else ""
    idle = bool(kubernetes) and bool(isolations.value(kubernetes, "cpu", "idle", disabled=False))
    cookie = isolated.cookie(held.facts)
    by_cores = isolated.mechanism == "coreSched"
    expelling = [one for one in (LSR, LS, BE) if by_cores and one != group and isolations.on(one, "cpu")]
    expelling = [one for one in expelling if isolations.value(one, "cpu", "expels")]
    parts = []
    if value is not None and not by_cores:
        parts.append(f"Its group identity is {value} (`cpu.bvt_warp_ns`): {_IDENTITIES[value]}.")
    if idle:
        parts.append("Its class runs only where nothing else wants to (`cpu.idle`).")
    if cookie:
        parts.append(
            "On the sibling CPUs of a core only pods run beside it that share its cookie of core scheduling."
        )
    if expelling:
        parts.append(f"Pods of class {' and '.join(expelling)} keep it off the sibling CPUs of theirs.")
    if not parts:
        return Hold(title, ISOLATION, HoldState.OFF, "No policy sets one pod before another on CPUs.")
    held_back = idle or bool(expelling) or (value is not None and value < 0 and not by_cores)
    return Hold(
        title,
        ISOLATION,
        HoldState.HOLDS if held_back else HoldState.SPARES,
        " ".join(parts),
        held.asked(
            "SystemTuning.cpuMechanism",
            *(f"{ISOLATION}/{group}.cpu.{one}" for one in ("enabled", "identity", "expels")),
            *((f"{ISOLATION}/{kubernetes}.cpu.idle",) if kubernetes else ()),
            *(f"{ISOLATION}/{one}.cpu.expels" for one in expelling),
        ),
        held.own(CPU_QOS),
        "whether the node's kernel knows this, and how often the pod had to wait",
    )


_IDENTITIES: Final = {
    -1: "tasks of all others run before its own",
    0: "its tasks run after those of groups above 0, and before those below",
    1: "its tasks run before those of groups below",
    2: "its tasks run before those of all others",
}


def interference(held: HeldPod) -> Hold:
    """What is taken from best-effort work while another pod of the node suffers."""
    title, graph = "Others that suffer", held.graph
    rules = []
    for rule in graph.subjects(INTERFERENCE):
        about = graph.about(INTERFERENCE, rule, held.roots)
        if about.value("enabled"):
            rules.append((rule, str(about.value("reaction")), about.value("share")))
    if not rules:
        return Hold(title, INTERFERENCE, HoldState.OFF, "No policy watches for pods that others hold up.")
    parts = []
    for rule, reaction, share in rules:
        if reaction == SUPPRESS:
            parts.append(
                f"While `{rule}` holds of a pod, best-effort work has {share or 0:g}% of the node's CPU less."
            )
        elif reaction == EVICT:
            parts.append(f"While `{rule}` holds of a pod, best-effort pods go, one after the other.")
        else:
            parts.append(f"Where `{rule}` holds of a pod, that is told, and no more.")
    acts = any(reaction in (SUPPRESS, EVICT) for _, reaction, _ in rules)
    names = (
        f"{INTERFERENCE}/{rule}.{field}" for rule, _, _ in rules for field in ("enabled", "reaction", "share")
    )
    return Hold(
        title,
        INTERFERENCE,
        HoldState.MAY if acts and held.best_effort else HoldState.SPARES,
        " ".join(parts),
        held.asked(*names),
        unseen="pressure, cycles per instruction and waiting for a CPU; an Event tells of each pod that begins to suffer",
    )


# --- hooks --------------------------------------------------------------------------------------------


def _numbers(held: HeldPod) -> HookedNumbers:
    return numbers_by_writer(held.graph, held.pod, held.node, held.now)


def _writer(said: HookedNumbers, container: str, field: str) -> str:
    """As whom hooks say the number that counts."""
    whole = getattr(said.whole.containers[container], field)
    names = [
        writer
        for writer, numbers in said.by_writer.items()
        if container in numbers.containers and getattr(numbers.containers[container], field) == whole
    ]
    return f"`{names[-1]}`" if names else "policy"


def _of_hooks(held: HeldPod, field: str) -> tuple[AskedDecision, ...]:
    """What hooks are asked about a field, of the pod and of each container."""
    roots = hook_roots(held.graph, held.pod, held.node, held.now)
    containers = listed_containers(held.graph, held.pod).values()
    records = [{**roots, "container": container_facts(one, init=False)} for one in containers]
    found = []
    for hook in held.graph.subjects(HOOK):
        of_pod, of_container = (f"{HOOK}/{hook}.{level}.{field}" for level in ("pod", "container"))
        if of_pod in held.graph:
            found.append(AskedDecision(of_pod, roots))
        if of_container in held.graph:
            found += [AskedDecision(of_container, one) for one in records]
    return tuple(found)
