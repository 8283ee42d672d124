"""Whose admission changes between two revisions: every pod of a snapshot, as if it were created anew."""

from collections.abc import Iterable
from typing import Final

from koordpolicy.cli.difference import AdmissionKind, OnAdmission
from koordpolicy.graph.diff import Difference, Sides
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES, NAMESPACES, PRIORITY_CLASSES
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.manager.webhooks.rehearsal import PictureObjects, Rehearsal, RehearsedAdmission

_KINDS: Final = frozenset(
    {"AdmissionRule", "ColocationProfile", "DeviceSharing", "PolicyException", "PriorityBand", "QoSClass"}
)
"""What admission is decided by."""
_NAMED: Final = 3


def changed_admissions(sides: Sides, snapshot: Snapshot, difference: Difference) -> OnAdmission | None:
    """How many pods are admitted otherwise; None where no policy changed that admission is decided by."""
    if _KINDS.isdisjoint(name.partition("/")[0].partition(".")[0] for name in _names(difference)):
        return None
    read = (NAMESPACES, PRIORITY_CLASSES, CLUSTER_COLOCATION_PROFILES)
    objects = {resource: snapshot.of(resource) for resource in read}
    old, new = (
        Rehearsal(graph, PictureObjects(graph, objects), snapshot.taken) for graph in (sides.old, sides.new)
    )
    found: dict[str, list[str]] = {}
    for pod in snapshot.pods:
        what = _change(old.of(pod, traced=False), new.of(pod, traced=False))
        if what:
            metadata = pod["metadata"]
            found.setdefault(what, []).append(f"{metadata.get('namespace', 'default')}/{metadata['name']}")
    kinds = tuple(
        AdmissionKind(what, len(names), tuple(sorted(names)[:_NAMED]))
        for what, names in sorted(found.items())
    )
    return OnAdmission(len(snapshot.pods), sum(one.count for one in kinds), kinds)


def _names(difference: Difference) -> Iterable[str]:
    """The decisions and documents that differ, or may."""
    for change in difference.decisions:
        yield change.decision
        yield from (effect.decision for effect in change.effects)
    yield from (one.decision for one in difference.open)
    yield from (one.document for one in difference.settings)
    yield from (one.document for one in difference.documents)


def _change(old: RehearsedAdmission, new: RehearsedAdmission) -> str:
    """What becomes otherwise of a pod, the gravest of it; empty for nothing."""
    if bool(old.refused) != bool(new.refused):
        return "refused from now on" if new.refused else "admitted from now on"
    if old.refused != new.refused:
        return "refused for another reason"
    if old.mutation.pod != new.mutation.pod:
        return "changed otherwise"
    if old.warnings != new.warnings or old.violations != new.violations:
        return "warned of otherwise"
    return ""
