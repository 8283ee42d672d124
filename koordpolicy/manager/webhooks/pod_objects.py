"""What can be said of a pod's object before it is read: how much there is of it, whether an update changes it."""

from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.budgets import budgets_of
from koordpolicy.kube.admission import AdmissionRequest
from koordpolicy.kube.port import Object
from koordpolicy.model.reading import ObjectError, mapping, sequence

SPOKEN_OF: Final = ("labels", "annotations", "ownerReferences")
"""What of a pod's metadata policies can speak of, and an update can change."""
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def check_size(pod: Object, graph: RuleGraph) -> None:
    """Raises ObjectError for a pod with more containers than policies permit: each costs time that others wait for."""
    most = budgets_of(graph).containers_per_pod
    spec = mapping(pod, "spec")
    count = 0
    for field in _CONTAINERS:
        count += len(sequence(spec, field, "spec"))
    if count > most:
        raise ObjectError(f"spec: {count} containers, at most {most} are admitted")


def is_unchanged(request: AdmissionRequest) -> bool:
    """Whether an update leaves all as it is that policies can speak of. Raises ObjectError."""
    new, old = request.object, request.old_object
    if new is None or old is None or new.get("spec") != old.get("spec"):
        return False
    metadata, before = mapping(new, "metadata"), mapping(old, "metadata")
    return all((metadata.get(field) or None) == (before.get(field) or None) for field in SPOKEN_OF)
