"""A pod that the cluster shows where it was put is taken for what it is, without being read anew."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from koordpolicy.cluster.binding_seen import bound_view
from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.pods import PodView
from koordpolicy.kube import Object
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.resources import NODES, PODS
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import ObjectError
from koordpolicy.scheduler import Scheduler
from tests.unit.scheduler.world import PROFILE, START, policies

_WHEN = "2026-01-01T00:00:00Z"


def _pod() -> dict[str, Any]:
    requests = {"cpu": "500m", "memory": "1Gi"}
    ports = [{"containerPort": 80, "hostPort": 8080}]
    return {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "one",
            "resourceVersion": "5",
            "labels": {"app": "web"},
            "creationTimestamp": _WHEN,
        },
        "spec": {
            "schedulerName": PROFILE,
            "priority": 0,
            "containers": [
                {"name": "c", "image": "pause", "resources": {"requests": requests}, "ports": ports}
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def _bound(change: Callable[[dict[str, Any]], object] = lambda obj: None) -> dict[str, Any]:
    obj = deepcopy(_pod())
    obj["metadata"]["resourceVersion"] = "6"
    obj["spec"]["nodeName"] = "n1"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _WHEN}
    obj["status"]["conditions"] = [scheduled]
    change(obj)
    return obj


def _scheduler(*documents: Any) -> Scheduler:
    return Scheduler(policies(*documents), lambda: START)


def _view(obj: Object, scheduler: Scheduler) -> PodView:
    return scheduler.framework.cycle(read_pod(obj)).view


def _place(obj: dict[str, Any]) -> None:
    """As servers do since 1.35."""
    obj["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z1"
    obj["metadata"]["labels"]["topology.kubernetes.io/region"] = "r1"


@pytest.mark.parametrize("change", [lambda obj: None, _place])
def test_what_is_seen_is_what_would_be_read(change: Callable[[dict[str, Any]], object]) -> None:
    scheduler = _scheduler()
    obj = _bound(change)
    known = _view(_pod(), scheduler)
    names = ("occupied", "occupied_nonzero", "ports", "images", "placement", "neighbours", "volumes", "kind")
    before = {name: getattr(known, name) for name in names}
    seen = bound_view(known, "n1", obj)
    read = _view(obj, scheduler)
    assert seen is not None
    assert (seen, seen.pod.raw) == (read, read.pod.raw)
    assert {name: getattr(seen, name) for name in names} == {name: getattr(read, name) for name in names}
    del before["kind"]  # which hangs on labels
    assert {name: seen.__dict__[name] for name in before} == before
    assert known.pod.node_name == "" and known.facts["nodeName"] == ""


def test_a_view_says_of_a_pod_nothing_that_hangs_on_its_node() -> None:
    """What is computed of a view once is taken over, so none of it may depend on what binding changes."""
    scheduler = _scheduler()
    known, read = _view(_pod(), scheduler), _view(_bound(), scheduler)
    computed = [name for name in dir(PodView) if not name.startswith("_") and name not in {"pod", "facts"}]
    assert len(computed) > 10
    assert {name: getattr(known, name) for name in computed} == {
        name: getattr(read, name) for name in computed
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj["metadata"].update(labels={"app": "other"}),
        lambda obj: obj["metadata"]["labels"].update(tier="front"),
        lambda obj: obj["metadata"].update(annotations={"a": "b"}),
        lambda obj: obj["metadata"].update(deletionTimestamp=_WHEN),
        lambda obj: obj["metadata"].update(uid="two"),
        lambda obj: obj["spec"].update(nodeName="n2"),
        lambda obj: obj["spec"].pop("nodeName"),
        lambda obj: obj["spec"].update(priority=1),
        lambda obj: obj["spec"]["containers"][0]["resources"]["requests"].update(cpu="1"),
        lambda obj: obj["status"].update(phase="Running"),
        lambda obj: obj["status"].update(nominatedNodeName="n1"),
        lambda obj: obj["status"]["conditions"].append({"type": "Initialized", "status": "True"}),
    ],
)
def test_whatever_else_changed_has_to_be_read(change: Callable[[dict[str, Any]], object]) -> None:
    assert bound_view(_view(_pod(), _scheduler()), "n1", _bound(change)) is None


def test_a_malformed_condition_is_reported() -> None:
    broken = _bound(lambda obj: obj["status"]["conditions"][0].update(lastTransitionTime="soon"))
    with pytest.raises(ObjectError, match=r"status\.conditions\.lastTransitionTime"):
        bound_view(_view(_pod(), _scheduler()), "n1", broken)


_BY_NODE = {"estimator": {"request": {"cel": "{'cpu': amount(pod.nodeName == '' ? 1000 : 2000)}"}}}


@pytest.mark.parametrize(("documents", "sees"), [((), True), ((_BY_NODE,), False)])
def test_a_binding_is_confirmed_either_way(documents: tuple[Any, ...], sees: bool) -> None:
    scheduler = _scheduler(*documents)
    malformed = UnreadableObjects(lambda *found: pytest.fail(str(found)))
    handlers = EventHandlers(scheduler, unreadable=malformed)
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {"metadata": {"name": "n1", "resourceVersion": "1"}, "status": {"allocatable": room}}
    handlers.mirrors[NODES].replace([node], "1")
    mirror: Mirror = handlers.mirrors[PODS]
    mirror.replace([_pod()], "5")
    assert scheduler.schedule_one() is not None
    key = ("default", "web")
    assert (scheduler.assumed(key) is not None) is sees
    mirror.replace([_bound()], "6")
    view = scheduler.cache.view(key)
    assert view == _view(_bound(), scheduler)
    assert not scheduler.ledger.assumed(key) and not len(malformed)
