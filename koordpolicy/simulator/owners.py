"""Workloads for pods that were described without one: what makes a pod anew has to be there, or nothing may move the pod."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource
from koordpolicy.simulator.workload import Arrival, Json, Workload

_NUMBER: Final = re.compile(r"-?[0-9]+$")
_Owner = tuple[str, str, str]
"""Namespace, kind and name."""


def owned(workload: Workload) -> Workload:
    """The same, each pod with an owner: a Job of those that end, a ReplicaSet of the others, by their names without the number.

    Nobody counts pods by selectors of these: who schedules spreads them no more than without.
    """
    replicas: Counter[_Owner] = Counter()
    arrivals = []
    for one in workload.arrivals:
        metadata = one.pod["metadata"]
        if metadata.get("ownerReferences"):
            arrivals.append(one)
            continue
        resource = resources.REPLICA_SETS if one.duration is None else resources.JOBS
        name = str(metadata.get("name", ""))
        stem = _NUMBER.sub("", name) or name
        replicas[metadata.get("namespace") or "default", resource.kind, stem] += 1
        arrivals.append(_owned(one, resource, stem))
    made = tuple(_workload(*owner, count) for owner, count in replicas.items())
    return replace(workload, arrivals=tuple(arrivals), objects=(*workload.objects, *made))


def _owned(one: Arrival, resource: Resource, name: str) -> Arrival:
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "controller": True}
    metadata = {**one.pod["metadata"], "ownerReferences": [owner]}
    return replace(one, pod={**one.pod, "metadata": metadata})


def _workload(namespace: str, kind: str, name: str, replicas: int) -> Json:
    resource = resources.JOBS if kind == resources.JOBS.kind else resources.REPLICA_SETS
    labels = {"koordpolicy.io/simulated-workload": name}
    template: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "simulated"}], "restartPolicy": "Never"},
    }
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
    if resource is resources.REPLICA_SETS:
        template["spec"]["restartPolicy"] = "Always"
        spec["replicas"] = replicas
    else:
        spec["parallelism"] = replicas
    return {
        "apiVersion": resource.api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
