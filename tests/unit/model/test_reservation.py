"""Reservations as they are read, and the pod in whose shape each is scheduled."""

from typing import Any

import pytest

from koordpolicy.model.pod_reservations import (
    NO_RESERVATIONS,
    read_operating_owners,
    read_pod_reservations,
)
from koordpolicy.model.protocol import (
    RESERVATION_AFFINITY,
    RESERVATION_ALLOCATED,
    RESERVATION_IGNORED,
    RESERVATION_ORDER,
    RESERVATION_OWNERS,
    RESERVATION_RESTRICTED_OPTIONS,
    RESERVE_POD,
    RESERVE_POD_NODE,
    SUB_PRIORITY,
)
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.reservation import KOORDINATORS, missing, read_reservation


def _object(**parts: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "4", "memory": "8Gi"}}}
    template = {"metadata": {"labels": {"app": "t", "tier": "a"}}, "spec": {"containers": [container]}}
    metadata = {
        "name": "r",
        "uid": "u-1",
        "labels": {"app": "r"},
        "creationTimestamp": "2023-11-14T22:00:00Z",
    }
    spec = {
        "template": template,
        "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}],
        "ttl": "24h",
    }
    obj: dict[str, Any] = {"metadata": metadata, "spec": spec, "status": parts.get("status", {})}
    obj["metadata"].update(parts.get("metadata", {}))
    obj["spec"].update(parts.get("spec", {}))
    return obj


def test_the_reserve_pod_is_the_template_under_the_name_of_the_uid() -> None:
    found = read_reservation(_object())
    pod = found.pod
    assert (pod.namespace, pod.name, pod.uid) == ("default", "u-1", "u-1")
    assert pod.labels == {"app": "r", "tier": "a"}
    assert pod.annotations[RESERVE_POD] == "true"
    assert (pod.priority, pod.scheduler_name, pod.node_name) == (
        KOORDINATORS.priority,
        "default-scheduler",
        "",
    )
    assert pod.containers[0].requests == {"cpu": 4000, "memory": 8 << 30}
    assert (found.allocate_once, found.phase, missing(found)) == (True, "Pending", "")


def test_a_node_that_the_template_names_is_wanted_and_not_given() -> None:
    template = {"spec": {"nodeName": "n1", "priority": 7}}
    pod = read_reservation(_object(spec={"template": template})).pod
    assert (pod.node_name, pod.annotations[RESERVE_POD_NODE], pod.priority) == ("", "n1", 7)


def test_what_is_available_counts_on_its_node_with_what_it_keeps_there() -> None:
    status = {"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "2"}}
    pod = read_reservation(_object(status=status)).pod
    assert pod.node_name == "n1"
    assert pod.containers[0].requests == {"cpu": 2000}


@pytest.mark.parametrize(("phase", "terminal"), [("Succeeded", True), ("Failed", True), ("Waiting", False)])
def test_what_is_over_holds_nothing(phase: str, terminal: bool) -> None:
    assert read_reservation(_object(status={"phase": phase, "nodeName": "n1"})).pod.terminal is terminal


def test_labels_say_order_and_priority() -> None:
    labels = {RESERVATION_ORDER: "-3", SUB_PRIORITY: "50"}
    found = read_reservation(_object(metadata={"labels": labels}))
    assert (found.order, found.pod.priority) == (-3, 50)
    assert read_reservation(_object(metadata={"labels": {RESERVATION_ORDER: "first"}})).order == 0


def test_options_that_cannot_be_read_make_it_unusable() -> None:
    found = read_reservation(_object(metadata={"annotations": {RESERVATION_RESTRICTED_OPTIONS: "{"}}))
    assert RESERVATION_RESTRICTED_OPTIONS in found.unusable


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"template": None}, "spec.template"),
        ({"ttl": "soon"}, "spec.ttl"),
        ({"owners": [{"controller": {"controller": "yes"}}]}, r"spec.owners\[0\].controller"),
    ],
)
def test_what_is_malformed_is_named(spec: dict[str, Any], what: str) -> None:
    with pytest.raises(ObjectError, match=what):
        read_reservation(_object(spec=spec))


def test_what_is_missing_is_told() -> None:
    assert "owners" in missing(read_reservation(_object(spec={"owners": []})))
    assert "ttl" in missing(read_reservation(_object(spec={"ttl": None})))


def test_pods_that_say_nothing_share_one_answer() -> None:
    assert read_pod_reservations({"app": "web"}, {"other": "x"}) is NO_RESERVATIONS


def test_pods_say_which_reservation_they_want_and_have() -> None:
    annotations = {
        RESERVATION_AFFINITY: '{"name": "r", "reservationSelector": {"zone": "a"}}',
        RESERVATION_ALLOCATED: '{"name": "r", "uid": "u-1"}',
    }
    found = read_pod_reservations({RESERVATION_IGNORED: "true"}, annotations)
    assert found.affinity is not None
    assert (found.affinity.name, found.affinity.selector) == ("r", {"zone": "a"})
    assert (found.ignores, found.allocated) == (True, "u-1")
    empty = read_pod_reservations({}, {RESERVATION_AFFINITY: ""})
    assert empty.affinity is not None
    assert empty.affinity.required is None


def test_owners_of_a_pod_that_operates_as_a_reservation() -> None:
    assert len(read_operating_owners({RESERVATION_OWNERS: '[{"object": {"name": "p"}}]'})) == 1
    with pytest.raises(ObjectError, match="a list of owners"):
        read_operating_owners({RESERVATION_OWNERS: '{"object": {}}'})
