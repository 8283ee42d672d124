"""What a pod may ask of a scheduler that this one cannot give. Such a pod waits, and is told why.

To place it nevertheless would be to ignore what it says it needs.
"""

from typing import Final

from koordpolicy.model.reading import Json, mapping

_GROUP: Final = "schedulingGroup"
_NEEDS: Final = (
    ("resourceClaims", "resource claims, which this scheduler does not allocate"),
    (
        "workloadRef",
        "a place together with its workload as Kubernetes 1.35 says it; from 1.36 on a pod names a PodGroup in spec.schedulingGroup",
    ),
    (_GROUP, "a place together with its group, which this profile does not look after"),
)
"""Fields of a pod's spec with what they mean that a pod needs."""


def unsupported(pod: Json, *, groups: bool) -> str:
    """What a pod needs and cannot have, as a reason; empty when it is served. Raises ObjectError.

    `groups` says whether the profile looks after pods that go together.
    """
    spec = mapping(pod, "spec")
    for field, need in _NEEDS:
        if spec.get(field) and not (groups and field == _GROUP):
            return f"pod needs {need} (spec.{field})"
    return ""
