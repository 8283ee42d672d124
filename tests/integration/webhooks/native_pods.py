"""Random pods that an API server takes, or refuses for reasons of its own."""

from typing import Any

from hypothesis import strategies as st

_CPU = (
    "0",
    "1",
    "2",
    "250m",
    "1500m",
    "0.1",
    "1n",
    "33u",
    "1e3",
    "3e-3",
    "1k",
    "2Ki",
    "9223372036854775807",
    "5E",
)
_BYTES = (
    "0",
    "1",
    "128974848",
    "129e6",
    "129M",
    "123Mi",
    "1500m",
    "1.5Gi",
    "1n",
    "2500000000000000500m",
    "8Ei",
    "5E",
)
_WHOLE = ("0", "1", "100", "1k", "3000", "2Ki", "9223372036854775807")
_KEPT = (
    "kubernetes.io/batch-cpu",
    "koordinator.sh/batch-cpu",
    "kubernetes.io/batch-memory",
    "kubernetes.io/mid-cpu",
)
_LABELS = {
    "koordinator.sh/qosClass": ("LSE", "LSR", "LS", "BE", "SYSTEM", "be", ""),
    "koordinator.sh/priority-class": ("koord-prod", "koord-batch", "koord-free", "other", ""),
    "koordinator.sh/priority": ("", "7", "12", "x"),
    "team": ("a", "b", "It-is"),
}  # fmt: skip
CLASSES = {"koord-prod": 9000, "koord-mid": 7000, "koord-batch": 5500, "between": 6500}
"""PriorityClasses that they name."""
RUNTIME_CLASS = {
    "metadata": {"name": "heavy"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "7"}},
}
"""The RuntimeClass that gives pods an overhead."""

LABELS = st.fixed_dictionaries({}, optional={key: st.sampled_from(all) for key, all in _LABELS.items()})


@st.composite
def _resources(draw: st.DrawFn) -> dict[str, Any]:
    plain = {
        "cpu": st.sampled_from(_CPU),
        "memory": st.sampled_from(_BYTES),
        "ephemeral-storage": st.sampled_from(_BYTES),
    }
    requests = draw(st.fixed_dictionaries({}, optional=plain))
    limits = draw(st.fixed_dictionaries({}, optional=plain))
    if draw(st.booleans()):
        limits = {**limits, **requests}
    for name in draw(st.lists(st.sampled_from(_KEPT), unique=True, max_size=3)):
        requests[name] = limits[name] = draw(st.sampled_from(_WHOLE))
    return {"requests": requests, "limits": limits}


_USERS: dict[str, st.SearchStrategy[Any]] = {
    "runAsNonRoot": st.booleans(),
    "runAsUser": st.sampled_from((0, 1000)),
    "runAsGroup": st.sampled_from((0, 7)),
    "seccompProfile": st.sampled_from(({"type": "RuntimeDefault"}, {"type": "Unconfined"})),
}
_CAPABILITIES = st.fixed_dictionaries(
    {},
    optional={
        "add": st.lists(st.sampled_from(("NET_ADMIN", "CHOWN")), max_size=2),
        "drop": st.lists(st.sampled_from(("ALL", "KILL")), max_size=2),
    },
)
_RIGHTS = st.fixed_dictionaries(
    {},
    optional={
        **_USERS,
        "privileged": st.booleans(),
        "allowPrivilegeEscalation": st.booleans(),
        "readOnlyRootFilesystem": st.booleans(),
        "capabilities": _CAPABILITIES,
    },
)
_TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7},
    {"key": "a", "value": "b"},
    {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
)
_SOURCES: tuple[dict[str, Any], ...] = (
    {},
    {"hostPath": {"path": "/var/log"}},
    {"hostPath": {"path": "/dev", "type": "Directory"}},
    {"emptyDir": {}},
    {"secret": {"secretName": "s"}},
    {"persistentVolumeClaim": {"claimName": "c"}},
)
_PORT = st.sampled_from(({}, {"protocol": "UDP"}, {"hostIP": "127.0.0.1"}))
_SPEC = st.fixed_dictionaries(
    {},
    optional={
        **{
            name: st.booleans()
            for name in ("hostNetwork", "hostPID", "hostIPC", "automountServiceAccountToken")
        },
        "serviceAccountName": st.just("robot"),
        "nodeSelector": st.sampled_from(({}, {"pool": "a"}, {"other": "b"})),
        "securityContext": st.fixed_dictionaries({}, optional={**_USERS, "fsGroup": st.just(5)}),
        "tolerations": st.lists(st.sampled_from(_TOLERATIONS), max_size=3),
        "volumes": st.lists(st.sampled_from(_SOURCES), max_size=3).map(
            lambda found: [{"name": f"v{at}", **one} for at, one in enumerate(found)]
        ),
    },
)
"""What else specs say."""


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """A pod without a namespace."""

    def containers(front: str, least: int, *, init: bool) -> list[dict[str, Any]]:
        found = []
        for at in range(draw(st.integers(least, 3))):
            one: dict[str, Any] = {
                "name": f"{front}{at}",
                "image": draw(st.sampled_from(("i", "registry.example/i:1"))),
            }
            one["resources"] = draw(_resources())
            if init and draw(st.booleans()):
                one["restartPolicy"] = "Always"
            if draw(st.booleans()):
                one["securityContext"] = draw(_RIGHTS)
            if draw(st.integers(0, 3)) == 0:
                port = {"containerPort": 8000 + at, **draw(_PORT), "name": f"{front}{at}"}
                one["ports"] = [{**port, "hostPort": 8000 + at}] if draw(st.booleans()) else [port]
            found.append(one)
        return found

    spec: dict[str, Any] = {
        **draw(_SPEC),
        "containers": containers("c", 1, init=False),
        "initContainers": containers("i", 0, init=True),
    }
    if draw(st.booleans()):
        spec["priorityClassName"] = draw(st.sampled_from(tuple(CLASSES)))
    if draw(st.integers(0, 3)) == 0:
        spec["runtimeClassName"] = "heavy"
    if draw(st.integers(0, 3)) == 0:
        spec["resources"] = draw(
            st.fixed_dictionaries(
                {}, optional={
                    "requests": st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(_CPU), "memory": st.sampled_from(_BYTES)}),
                    "limits": st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(_CPU), "memory": st.sampled_from(_BYTES)}),
                },
            )
        )  # fmt: skip
    metadata: dict[str, Any] = {"name": "p", "labels": draw(LABELS)}
    if draw(st.booleans()):
        metadata["annotations"] = {"note": draw(st.sampled_from(("", "x")))}
    if draw(st.integers(0, 5)) == 0:
        metadata.setdefault("annotations", {})["scheduling.koordinator.sh/reserve-pod"] = "true"
    if draw(st.integers(0, 2)) == 0:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": kind,
                "name": "o",
                "uid": f"u{at}",
                **({"controller": True} if at == 0 else {}),
            }
            for at, kind in enumerate(
                draw(st.lists(st.sampled_from(("DaemonSet", "ReplicaSet", "Job")), max_size=2))
            )
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
