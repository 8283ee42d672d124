"""Facts of what only a pod's object says, as who decides on pods as they are submitted has it at hand."""

from koordpolicy.language.cel.types import BOOL, INT, STRING, list_of, map_of, record
from koordpolicy.language.facts.table import EVERYWHERE, Component, Components, Fact, Record

_SUBMITTED: Components = frozenset({Component.WEBHOOK})
_LISTED = EVERYWHERE
"""What stands in lists: who has such a list has all of it."""


def _users(whose: str, beside: str) -> tuple[Fact, ...]:
    """What may be said for a whole pod and for a container of it."""
    return (
        Fact(
            "securityContext.runAsNonRoot",
            BOOL,
            f"Whether {whose} must not run as root; absent where that is not said{beside}.",
            _SUBMITTED,
            may_be_missing=True,
        ),
        Fact(
            "securityContext.runAsUser",
            INT,
            f"User that {whose} runs as, 0 for root; absent where that is not said{beside}.",
            _SUBMITTED,
            may_be_missing=True,
        ),
        Fact(
            "securityContext.runAsGroup",
            INT,
            f"Group that {whose} runs as; absent where that is not said{beside}.",
            _SUBMITTED,
            may_be_missing=True,
        ),
        Fact(
            "securityContext.seccompProfile.type",
            STRING,
            f"Which system calls {whose} may make: `RuntimeDefault`, `Localhost`, `Unconfined`; absent where that is not "
            f"said{beside}.",
            _SUBMITTED,
            may_be_missing=True,
        ),
    )


POD_SPEC = (
    Fact("hostNetwork", BOOL, "Whether the pod uses the network of its node.", _SUBMITTED),
    Fact("hostPID", BOOL, "Whether the pod sees all processes of its node.", _SUBMITTED),
    Fact("hostIPC", BOOL, "Whether the pod shares memory and semaphores of its node.", _SUBMITTED),
    Fact("serviceAccountName", STRING, "Service account that the pod runs as.", _SUBMITTED),
    Fact(
        "automountServiceAccountToken",
        BOOL,
        "Whether the pod gets a token of its service account; absent where the account says.",
        _SUBMITTED,
        may_be_missing=True,
    ),
    Fact("runtimeClassName", STRING, "Name of its RuntimeClass; empty without one.", _SUBMITTED),
    Fact("nodeSelector", map_of(STRING, STRING), "Labels that its node must have.", _SUBMITTED),
    Fact("tolerations", list_of(record("toleration")), "Taints that the pod bears.", _SUBMITTED),
    Fact("volumes", list_of(record("volume")), "Volumes of the pod.", _SUBMITTED),
    Fact(
        "ephemeralContainers",
        list_of(record("container")),
        "Containers that were added to look into the running pod; none of them is in `containers`.",
        _SUBMITTED,
    ),
    *_users("every container", "; a container may say otherwise"),
    Fact(
        "securityContext.fsGroup",
        INT,
        "Group that volumes are given to; absent where that is not said.",
        _SUBMITTED,
        may_be_missing=True,
    ),
)
"""Of a pod."""

CONTAINER_SPEC = (
    Fact(
        "imagePullPolicy",
        STRING,
        "When the image is pulled: `Always`, `IfNotPresent`, `Never`.",
        _SUBMITTED,
        usual="IfNotPresent",
    ),
    Fact("ports", list_of(record("containerPort")), "Ports that the container declares.", _SUBMITTED),
    Fact(
        "securityContext.privileged",
        BOOL,
        "Whether the container may do on its node what root may.",
        _SUBMITTED,
    ),
    Fact(
        "securityContext.allowPrivilegeEscalation",
        BOOL,
        "Whether a process may gain more rights than its parent has; absent where that is not said, and then it may.",
        _SUBMITTED,
        may_be_missing=True,
    ),
    Fact(
        "securityContext.readOnlyRootFilesystem",
        BOOL,
        "Whether the container cannot write to its root file system.",
        _SUBMITTED,
    ),
    *_users("the container", " for it; the pod may say it for all"),
    Fact(
        "securityContext.capabilities.add",
        list_of(STRING),
        "Capabilities beside the usual ones, such as `NET_ADMIN`.",
        _SUBMITTED,
    ),
    Fact(
        "securityContext.capabilities.drop",
        list_of(STRING),
        "Usual capabilities that the container does without; `ALL` for all.",
        _SUBMITTED,
    ),
)
"""Of a container."""

TOLERATION = Record(
    "toleration",
    "A taint that a pod bears.",
    (
        Fact("key", STRING, "Key of the taint; empty for every key, with the operator `Exists`.", _LISTED),
        Fact(
            "operator",
            STRING,
            "How the value is compared: `Equal`, or `Exists` for every value.",
            _LISTED,
            usual="Equal",
        ),
        Fact("value", STRING, "Value of the taint.", _LISTED),
        Fact(
            "effect",
            STRING,
            "Effect of the taint, such as `NoSchedule`; empty for every effect.",
            _LISTED,
        ),
        Fact(
            "tolerationSeconds",
            INT,
            "How long the pod stays where it would be evicted; absent for ever.",
            _LISTED,
            may_be_missing=True,
        ),
    ),
)

VOLUME = Record(
    "volume",
    "A volume of a pod.",
    (
        Fact("name", STRING, "Name of the volume.", _LISTED),
        Fact(
            "source",
            STRING,
            "What it is made from, as the API names it, such as `emptyDir`, `hostPath` or `persistentVolumeClaim`; empty for "
            "what this version does not know.",
            _LISTED,
            usual="emptyDir",
        ),
        Fact(
            "hostPath.path",
            STRING,
            "Path on the node; absent for volumes from elsewhere.",
            _LISTED,
            may_be_missing=True,
        ),
    ),
)

CONTAINER_PORT = Record(
    "containerPort",
    "A port that a container declares.",
    (
        Fact("name", STRING, "Name of the port; empty without one.", _LISTED),
        Fact("containerPort", INT, "Number of the port.", _LISTED, usual=80),
        Fact("hostPort", INT, "Port of the node that leads there; 0 for none.", _LISTED),
        Fact("hostIP", STRING, "Address of the node to which that is bound; empty for all.", _LISTED),
        Fact("protocol", STRING, "`TCP`, `UDP` or `SCTP`.", _LISTED, usual="TCP"),
    ),
)
