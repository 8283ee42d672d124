"""What a pod's volumes need on its node: volumes that become its claims', claims that their driver is asked about."""

from dataclasses import replace

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.volume_plan import VolumePlan
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.plugins.base import Host
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.volumes.binding import bindings, claims_of


def has_claims(pod: PodView) -> bool:
    """Whether a pod has claims at all."""
    return bool(pod.volumes.claims)


def take(_host: Host, pod: PodView, nodes: NodeView, parameters: Parameters) -> VolumePlan | None:
    """Plan what is to be bound or made for the one node that is shown, which counts from now on."""
    volumes = nodes.state.volumes
    node = nodes.text(int(nodes.names()[0]))
    found = bindings(claims_of(pod, volumes), nodes, volumes).plan(0, node)
    if not found:
        return None
    within = parameters.get("bindTimeout")
    if within is not None:
        found = replace(found, within=within.ns / NANOSECONDS)
    volumes.plan(found)
    return found


def give_back(host: Host, plan: VolumePlan) -> None:
    """It does not come about."""
    host.cluster.volumes.give_up(plan)


def take_again(host: Host, plan: VolumePlan) -> None:
    """It comes about after all."""
    host.cluster.volumes.plan(plan)
