"""`koordpolicy explain node NAME`: the devices and CPUs of a node with the pods that have them."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.explain_pod import objects_by_key, scheduler_of_picture
from koordpolicy.cli.picture import picture_of
from koordpolicy.cli.pod_policies import policies_of
from koordpolicy.cli.simulation.words import Page, bar
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cluster.state import ClusterState
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE

_BAR: Final = 20


@dataclass(frozen=True, slots=True)
class OwnedDevice:
    """A device: how much of it pods have, in percent, and how much each of them; the virtual functions of it that are taken."""

    type: str
    minor: int
    healthy: bool
    used: int
    owners: tuple[tuple[PodKey, int], ...]
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnedZone:
    """The CPUs of a NUMA zone, those that nobody owns, and who owns which."""

    zone: int
    cpus: str
    free: int
    owners: tuple[tuple[PodKey, str], ...]


def explain_node_room(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Show who has what of the node of the arguments. Raises `CannotRunError`."""
    if arguments.policies and arguments.policies_from_cluster:
        raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    cluster, heard = picture_of(arguments, terminal)
    policies, name = policies_of(arguments, heard), str(arguments.name)
    scheduler = scheduler_of_picture(policies, cluster, DEFAULT_PROFILE, 0, objects_by_key(cluster), terminal)
    if name not in scheduler.cache.table:
        raise CannotRunError(f"there is no node `{name}`, of {len(scheduler.cache.table):,}")
    state = scheduler.cache.state
    devices, zones = [*owned_devices(state, name)], [*owned_zones(state, name)]
    if arguments.output == "json":
        terminal.print(json_text(plain_room(name, devices, zones), indent=2))
    else:
        terminal.print("\n".join(_lines(name, devices, zones, Page(terminal.width, terminal.colour()))))
    return OK


def owned_devices(state: ClusterState, node: str) -> Iterator[OwnedDevice]:
    """The devices of a node that the scheduler deals out, type by type."""
    cards = state.cards
    sorts = {} if cards.policy is None else cards.policy.sorts
    for type, sort in sorts.items():
        measured = sort.words.measured
        for card in sorted(cards.cards(node, type), key=lambda card: card.minor):
            whole = card.total.get(measured, 0)
            owners, functions = [], []
            for pod, claim in sorted(cards.owners(node).items()):
                for share in claim.shares.get(type, ()):
                    if share.minor == card.minor:
                        part = share.resources.get(measured, 0)
                        owners.append((pod, 100 * part // whole if whole else 0))
                        functions += [one.bus for one in share.functions]
            used = 100 - card.percent(measured) if whole else 0
            yield OwnedDevice(type, card.minor, bool(card.total), used, tuple(owners), tuple(functions))


def owned_zones(state: ClusterState, node: str) -> Iterator[OwnedZone]:
    """The NUMA zones of a node whose CPUs an object tells of."""
    if not state.cpus.knows(node):
        return
    layout, owners = state.cpus.account(node).room.layout, state.cpus.owners(node)
    for zone, cpus in sorted(layout.zones.items()):
        owned = [(pod, claim.allocation.cpus & cpus) for pod, claim in sorted(owners.items())]
        taken = frozenset[int]().union(*(part for _, part in owned))
        shown = tuple((pod, cpuset_text(part)) for pod, part in owned if part)
        yield OwnedZone(zone, cpuset_text(cpus), len(cpus - taken), shown)


def plain_room(name: str, devices: list[OwnedDevice], zones: list[OwnedZone]) -> dict[str, Any]:
    """As JSON values."""
    return {
        "node": name,
        "devices": [
            {
                "type": one.type,
                "minor": one.minor,
                "healthy": one.healthy,
                "usedPercent": one.used,
                "owners": [{"pod": "/".join(pod), "percent": part} for pod, part in one.owners],
                **({"functions": list(one.functions)} if one.functions else {}),
            }
            for one in devices
        ],
        "zones": [
            {
                "zone": one.zone,
                "cpus": one.cpus,
                "free": one.free,
                "owners": [{"pod": "/".join(pod), "cpus": part} for pod, part in one.owners],
            }
            for one in zones
        ],
    }


def _lines(name: str, devices: list[OwnedDevice], zones: list[OwnedZone], page: Page) -> Iterator[str]:
    idle = sum(1 for one in devices if one.healthy and not one.used)
    yield page.heading(f"Node {name}", f"{idle} of {len(devices)} devices idle" if devices else "")
    if not devices and not zones:
        yield from page.wrapped("No object tells of its devices or CPUs.", 2)
    for device in devices:
        first = f"  {device.type} {device.minor}".ljust(10)
        if not device.healthy:
            yield f"{first}not healthy"
            continue
        picture = bar(device.used / 100, _BAR).ljust(_BAR, "·")
        owners = ", ".join(f"{'/'.join(pod)} {part} %" for pod, part in device.owners)
        owners += f" ({', '.join(device.functions)})" if device.functions else ""
        begin = f"{first}{picture} {device.used:3} %  "
        yield from page.wrapped(owners, len(begin), begin)
    for zone in zones:
        owners = "".join(f"; {'/'.join(pod)} {part}" for pod, part in zone.owners)
        yield from page.wrapped(
            f"CPUs {zone.cpus}: {zone.free} are nobody's own{owners}", 10, f"  zone {zone.zone}"
        )
