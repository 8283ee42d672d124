"""Volumes on their way to a node: what a plan says is written, then the cluster's controllers are waited for.

Writing the same plan again writes nothing. A volume or claim that went another way meanwhile is a Conflict:
then the pod has to be decided on anew.
"""

from typing import Final

from koordpolicy.cluster.volume_plan import VolumeBind, VolumePlan
from koordpolicy.kube import Conflict, MergePatch, Object
from koordpolicy.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from koordpolicy.model.protocol import BOUND_BY_CONTROLLER, SELECTED_NODE
from koordpolicy.model.volumes import ClaimKey, read_claim, read_volume
from koordpolicy.scheduler.plugins.base import Host, Port, Sleep

EVERY: Final = 1.0
"""Seconds between two looks at claims that are not bound yet, as far as news of them have come."""

ASKED: Final = 15
"""Looks after which the cluster is asked though there are no news: many pods may wait for minutes."""


async def bind_volumes(host: Host, plan: VolumePlan, cluster: Port, sleep: Sleep) -> None:
    """Write a plan and wait until all its claims are bound, as long as it says. Raises KubeError."""
    for bind in plan.binds:
        await _bind(cluster, bind)
    for claim in plan.claims:
        await _select(cluster, claim, plan.node)
    for look in range(max(1, int(plan.within / EVERY))):
        if (look % ASKED == 0 or _has_news(host, plan)) and await _all_bound(cluster, plan):
            return
        await sleep(EVERY)
    raise Conflict(f"the volumes of the pod were not bound within {plan.within:g} s")


async def _bind(cluster: Port, bind: VolumeBind) -> None:
    """Make a volume the claim's, if it is nobody else's."""
    obj = await cluster.get(PERSISTENT_VOLUMES, bind.volume)
    found = read_volume(obj)
    if found.claim == bind.claim and found.claim_uid in ("", bind.claim_uid):
        return
    if found.claim is not None:
        raise Conflict(f"the volume `{bind.volume}` belongs to {'/'.join(found.claim)} by now")
    namespace, name = bind.claim
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": name,
        "uid": bind.claim_uid,
    }
    patch = {
        # The version as it was read, so that of two claims one gets the volume.
        "metadata": {
            "resourceVersion": _version(obj),
            "annotations": {BOUND_BY_CONTROLLER: "yes"},
        },
        "spec": {"claimRef": reference},
    }
    await cluster.patch(PERSISTENT_VOLUMES, bind.volume, MergePatch(patch))


async def _select(cluster: Port, claim: ClaimKey, node: str) -> None:
    """Ask for a volume for a node."""
    namespace, name = claim
    obj = await cluster.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
    found = read_claim(obj)
    if found.selected_node == node or found.bound:
        return
    if found.selected_node:
        raise Conflict(f"the claim `{name}` goes to the node {found.selected_node} by now")
    patch = {"metadata": {"resourceVersion": _version(obj), "annotations": {SELECTED_NODE: node}}}
    await cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, MergePatch(patch), namespace=namespace)


def _has_news(host: Host, plan: VolumePlan) -> bool:
    """Whether all claims were heard to be bound, or one of them that it lacks the plan's node: it may be given up, or
    what was written has not been heard of yet.
    """
    asked = [(key, host.cluster.volumes.shown(key)) for key in _claims(plan)]
    if any(one is None or not (one.bound or one.selected_node) for key, one in asked if key in plan.claims):
        return True
    return all(one is not None and one.bound for _, one in asked)


def _claims(plan: VolumePlan) -> tuple[ClaimKey, ...]:
    return (*(bind.claim for bind in plan.binds), *plan.claims)


async def _all_bound(cluster: Port, plan: VolumePlan) -> bool:
    """Whether all claims are bound. A claim that lost its node was given up by its driver: a Conflict."""
    for namespace, name in _claims(plan):
        claim = read_claim(await cluster.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace))
        if claim.bound:
            continue
        if claim.key in plan.claims and claim.selected_node != plan.node:
            raise Conflict(f"no volume could be made for the claim `{name}` on the node {plan.node}")
        return False
    return True


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])
