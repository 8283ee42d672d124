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
            found.append(one)
        return found

    spec: dict[str, Any] = {
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
