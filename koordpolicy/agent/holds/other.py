"""What holds a pod back beside its CPU: memory that slows it down, caches and their bandwidth, disks, the network."""

from typing import Final

from koordpolicy.agent.holds.hold import HeldPod, Hold, HoldState, Setting
from koordpolicy.agent.strategies.cache_isolation import IsolatedCache
from koordpolicy.agent.strategies.disk_isolation import blocks_rule, own_blocks
from koordpolicy.agent.strategies.isolation import BE, KIND, LS, Isolations, group_of, labelled_group
from koordpolicy.agent.strategies.memory_isolation import IsolatedMemory
from koordpolicy.agent.strategies.network_isolation import Bandwidth, IsolatedNetwork, own_limit
from koordpolicy.algorithms.memory_protection import UNLIMITED_MEMORY
from koordpolicy.graph.graph import Facts
from koordpolicy.model.protocol import BLKIO_QOS, MEMORY, MEMORY_QOS, NETWORK_QOS, RESCTRL
from koordpolicy.model.quantity import Notation, Quantity

_WHOLE: Final = 100.0
_PAGE: Final = 1 << 20
"""Bytes that people do not count below."""


def memory(held: HeldPod) -> Hold:
    """From where on a container is slowed down, before it reaches its limit."""
    title = "Memory"
    isolated = IsolatedMemory(Isolations(held.graph, held.node, held.now))
    treated = isolated.treatment(held.facts)
    there = int(held.node["resources.allocatable"].get(MEMORY, 0))  # type: ignore[attr-defined]  # a record holds anything
    marks = {
        name: kept.high
        for name, kept in isolated.container_memory(held.facts, treated, there).items()
        if kept.high is not None and kept.high < UNLIMITED_MEMORY
    }
    group, own = group_of(held.facts), held.own(MEMORY_QOS)
    asked = held.asked(f"{KIND}/{group}.memory.enabled", f"{KIND}/{group}.memory.throttling")
    if not marks:
        says = "Nothing slows it down before its limit, where the kernel ends it."
        return Hold(title, KIND, HoldState.SPARES if asked or own else HoldState.OFF, says, asked, own)
    parts = [f"`{name}` from {_bytes(mark)} on" for name, mark in marks.items()]
    used = held.facts.get("usage.memory")
    least = min(marks.values())
    if used is None:
        state, seen = HoldState.MAY, "What it uses was not reported."
    elif used < least:
        state, seen = HoldState.SPARES, f"It used {_bytes(used)} by the last report."
    else:
        state, seen = HoldState.HOLDS, f"It used {_bytes(used)} by the last report, and is slowed down there."
    if used is not None and used >= least and len(marks) > 1:
        state, seen = HoldState.MAY, f"The whole pod used {_bytes(used)} by the last report."
    says = f"The kernel slows down {'; '.join(parts)} (`memory.high`), so that it has less of its CPU, too. {seen}"
    unseen = "how often that happened (`memory.events`)"
    return Hold(title, KIND, state, says, asked, own, unseen)


def caches(held: HeldPod) -> Hold:
    """What it gets of the last-level cache, and of the bandwidth to memory."""
    title = "Caches and memory bandwidth"
    own = held.own(RESCTRL)
    if own:
        says = "It has a part of its own of the last-level cache and of memory's bandwidth."
        return Hold(title, KIND, HoldState.HOLDS, says, (), own, "the part as the kernel has it (`schemata`)")
    group = labelled_group(held.facts)
    isolations = Isolations(held.graph, held.node, held.now)
    asked = held.asked(*(f"{KIND}/{group}.cache.{one}" for one in ("enabled", "start", "end", "bandwidth")))
    share = IsolatedCache(isolations).share(group) if group and isolations.on(group, "cache") else None
    if share is None:
        return Hold(title, KIND, HoldState.OFF, "No policy gives its class a part of them.", asked)
    parts = []
    if share.start is not None and share.end is not None and share.end - share.start < _WHOLE:
        parts.append(f"the last-level cache from {share.start:g}% to {share.end:g}%")
    if share.bandwidth is not None and share.bandwidth < _WHOLE:
        parts.append(f"{share.bandwidth:g}% of the bandwidth to memory")
    if not parts:
        return Hold(title, KIND, HoldState.SPARES, "Its class may use all of both.", asked)
    says = f"All pods of class {group} share {' and '.join(parts)}: beyond that their instructions wait."
    unseen = "whether the CPU knows this (resctrl), and what it costs: cycles per instruction"
    return Hold(title, KIND, HoldState.HOLDS, says, asked, unseen=unseen)


def disks(held: HeldPod) -> Hold:
    """What it may ask of disks."""
    title, own = "Disks", held.own(BLKIO_QOS)
    unseen = "what it asks of disks, and for how long that waits (`io.stat`)"
    if own:
        names = ", ".join(f"`{one.name}`" for one in own_blocks(held.facts["annotations"]) or ())
        says = f"It says itself what it may ask of {names or 'no device'}."
        return Hold(title, KIND, HoldState.HOLDS if names else HoldState.SPARES, says, (), own, unseen)
    isolations = Isolations(held.graph, held.node, held.now)
    asked = held.asked(f"{KIND}/{BE}.disk.enabled")
    on = held.best_effort and isolations.on(BE, "disk")
    blocks = held.graph.setting(KIND, BE, "blocks", {"node": held.node}) if on else None
    if not blocks:
        return Hold(title, KIND, HoldState.OFF, "No policy limits what it asks of disks.", asked)
    names = ", ".join(f"`{one.name}`" for one in blocks)
    says = f"All best-effort pods share what {KIND}/{BE}.blocks leaves them of {names}."
    rule = blocks_rule(held.graph, BE, {"node": held.node})
    settings = () if rule is None else (Setting(f"{KIND}/{BE}.blocks", *rule),)
    return Hold(title, KIND, HoldState.HOLDS, says, asked, unseen=unseen, settings=settings)


def network(held: HeldPod) -> Hold:
    """What it may send and receive."""
    title, own = "Network", held.own(NETWORK_QOS)
    isolated = IsolatedNetwork(Isolations(held.graph, held.node, held.now))
    group = BE if _batch(held.facts) else LS
    asked = held.asked(
        "SystemTuning.networkMechanism",
        "SystemTuning.networkBandwidth",
        *(f"{KIND}/{group}.network.{one}" for one in ("enabled", "egress.limit", "ingress.limit")),
    )
    mechanism = isolated.mechanism
    if not mechanism:
        says = "No class is kept apart on the network, or nobody says what it carries."
        return Hold(title, KIND, HoldState.OFF, says, asked, own)
    ways = [("send", "egress")] if mechanism == "tc" else [("send", "egress"), ("receive", "ingress")]
    parts = []
    for word, way in ways:
        limit, whose = own_limit(held.facts["annotations"], f"{way}Limit"), "it"
        if limit is None:
            bounds: Bandwidth = isolated.bounds(group, way)
            limit, whose = bounds.most, f"all pods of its class ({group})"
        if limit < isolated.total:
            parts.append(f"{whose} may {word} {_bits(limit)} at most")
    if not parts:
        return Hold(title, KIND, HoldState.SPARES, "It may use all that the network carries.", asked, own)
    says = f"{'; '.join(parts)}, of {_bits(isolated.total)}, by {mechanism}."
    says = says[0].upper() + says[1:]
    return Hold(
        title, KIND, HoldState.HOLDS, says, asked, own, "what was sent, and what waited or was dropped"
    )


def _batch(pod: Facts) -> bool:
    label = labelled_group(pod)
    return label == BE or (not label and str(pod["kubernetesQoS"]) == "BestEffort")


def _bytes(number: int) -> str:
    return str(Quantity.of(number >> 20 << 20 if number > _PAGE else number, Notation.BINARY))


def _bits(bytes_a_second: int) -> str:
    return f"{8 * bytes_a_second / 1e6:,.4g} Mbit/s"
