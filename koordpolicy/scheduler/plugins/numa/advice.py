"""What a pod lacks of CPUs and zones, with numbers."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from koordpolicy.algorithms.cpu_accumulator import BindPolicy, fitting
from koordpolicy.algorithms.cpu_binding import NO_TOPOLOGY, PodNeeds, Terms, conflict, terms_of
from koordpolicy.algorithms.numa_merge import NUMAPolicy
from koordpolicy.algorithms.zone_allocation import MILLI
from koordpolicy.cluster.cpu_accounts import CPUAccounts
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.protocol import CPU, CPU_TOPOLOGY
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import ObjectError
from koordpolicy.scheduler.plugins.base import PAUSE, ROWS, RefusedNodes
from koordpolicy.scheduler.plugins.numa.filters import needs_of
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.verdicts import Missing

_FEW: Final = 3
"""Nodes that are told of."""


def zones_advice(pod: PodView, _parameters: Parameters, refused: RefusedNodes) -> Iterator[str | None]:
    """Of which nodes nobody tells what CPUs they have, and how near the nodes came that have most:
    `n1: no NUMA zone has 12 free CPUs: zone 0 has 9, 3 are LSE's`.
    """
    state = refused.state
    if state is None:
        return
    try:
        needs = needs_of(pod, state.cpus)
    except ObjectError:
        return
    if needs is None:
        return
    said: list[tuple[int, str, str]] = []
    untold: list[str] = []
    for row in refused.rows.tolist():
        name = refused.table.name(row)
        if _is_untold(state.cpus, name, needs):
            untold.append(name)
        found = lacking(state.cpus, name, needs)
        if found is not None:
            said.append((-found[0], name, f"{name}: {found[1]}"))
        if row % ROWS == ROWS - 1:
            yield PAUSE
    without = sorted(name for name in untold if name not in state.zones)
    if without:
        yield Missing(
            f"no NodeResourceTopology tells of the CPUs of {_named(without)}; the agent on a node writes it"
        )
    silent = sorted(set(untold).difference(without))
    if silent:
        yield Missing(
            f"the NodeResourceTopology of {_named(silent)} does not tell of CPUs: it has no annotation {CPU_TOPOLOGY}"
        )
    for _, _, shown in sorted(said)[:_FEW]:
        yield shown


def _is_untold(cpus: CPUAccounts, node: str, needs: PodNeeds) -> bool:
    """Whether a node refuses a pod for want of an object that tells of its CPUs."""
    room = cpus.account(node).room
    return conflict(needs, room.rules, room.layout.per_core) == NO_TOPOLOGY


def _named(nodes: Sequence[str]) -> str:
    """The first of some nodes, and how many there are besides."""
    more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
    return f"{', '.join(nodes[:_FEW])}{more}"


def lacking(cpus: CPUAccounts, node: str, needs: PodNeeds) -> tuple[int, str] | None:
    """The most that a zone of a node has, or the node, and what it lacks in words; None where nothing more can be said."""
    account = cpus.account(node)
    room = account.room
    terms = terms_of(needs, room.rules, room.layout.per_core)
    if conflict(needs, room.rules, room.layout.per_core) is not None:
        return None
    single = terms.numa is NUMAPolicy.SINGLE_NUMA_NODE
    if terms.bound:
        usable = fitting(room.layout, room.free, terms.bind) if terms.required else room.free
        if not single and len(usable) < needs.cpus:
            kept = _kept(cpus, node, frozenset(room.layout.cpus))
            words = f"{_cpus(len(usable), terms)}{kept}, the pod asks for {needs.cpus}"
            return len(usable), words
        if single:
            by_zone = {
                zone: len(usable & room.layout.zones.get(zone, frozenset())) for zone in sorted(room.offers)
            }
            if by_zone and max(by_zone.values()) < needs.cpus:
                zones = ", ".join(
                    f"zone {zone} has {count}{_kept(cpus, node, room.layout.zones.get(zone, frozenset()))}"
                    for zone, count in by_zone.items()
                )
                what = " in whole cores" if _whole(terms) else ""
                return max(by_zone.values()), f"no NUMA zone has {needs.cpus} free CPUs{what}: {zones}"
    if not terms.numa:
        return None
    for name, asked in needs.request:
        free = {zone: amounts[name] for zone, amounts in sorted(room.available.items()) if name in amounts}
        if not free or (max(free.values()) if single else sum(free.values())) >= asked:
            continue
        zones = ", ".join(f"zone {zone} has {amount_text(name, amount)}" for zone, amount in free.items())
        have = "no NUMA zone has" if single else "its NUMA zones have not, together,"
        return max(
            free.values()
        ) // MILLI if name == CPU else 0, f"{have} {amount_text(name, asked)} of {name} free: {zones}"
    return None


def _whole(terms: Terms) -> bool:
    return terms.required and terms.bind is BindPolicy.FULL_PCPUS


def _cpus(count: int, terms: Terms) -> str:
    return f"{count} CPUs are free{' in whole cores' if _whole(terms) else ''}"


def _kept(cpus: CPUAccounts, node: str, among: frozenset[int]) -> str:
    """Who has how many of some CPUs: `, 3 are LSE's`."""
    counts: Counter[str] = Counter()
    for claim in cpus.owners(node).values():
        counts[claim.of or "others"] += len(claim.allocation.cpus & among)
    reserved = len(cpus.account(node).reserved & among)
    said = [
        f"{count} are {who}'s" if who != "others" else f"{count} are others'"
        for who, count in sorted(counts.items())
        if count
    ]
    if reserved:
        said.append(f"{reserved} are reserved")
    return "".join(f", {one}" for one in said)
