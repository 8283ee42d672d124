"""What pods say of other pods, ports, images and volumes, and what storage says of itself."""

from collections.abc import Callable
from typing import Any

import pytest

from koordpolicy.model.images import full_name, node_images, pod_images
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator
from koordpolicy.model.neighbours import ALONE, SpreadConstraint, read_neighbours
from koordpolicy.model.placement import read_placement
from koordpolicy.model.pod_ports import ANY_ADDRESS, HostPort, host_ports
from koordpolicy.model.pod_volumes import NO_VOLUMES, ClaimUse, Disk, PodVolumes, read_pod_volumes
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.volumes import (
    Attachment,
    StorageCapacity,
    read_attach_limits,
    read_attachment,
    read_capacity_tracking,
    read_claim,
    read_storage_capacity,
    read_storage_class,
    read_volume,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _affinity(kind: str, **terms: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web", "rev": "2"}}, "spec": {"affinity": {kind: terms}}}


def _selects(*requirements: tuple[str, Operator, str]) -> LabelSelector:
    return LabelSelector(
        tuple(LabelRequirement(key, how, frozenset({value})) for key, how, value in requirements)
    )


def test_a_term_speaks_of_the_pod_s_own_namespace_unless_it_names_others() -> None:
    base = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    found = read_neighbours(
        _affinity(
            "podAffinity",
            **{
                _REQUIRED: [
                    base,
                    {**base, "namespaces": ["a", "b"]},
                    {**base, "namespaceSelector": {}},
                    {**base, "namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "t"}}},
                ]
            },
        ),
        "mine",
    )
    assert [term.pods.namespaces for term in found.near] == [{"mine"}, {"a", "b"}, set(), {"a"}]
    assert [term.pods.namespace_selector is None for term in found.near] == [True, True, False, False]
    assert not found.apart


def test_label_keys_take_the_pod_s_own_values() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "matchLabelKeys": ["rev", "absent"],
        "mismatchLabelKeys": ["app"],
    }
    (found,) = read_neighbours(_affinity("podAntiAffinity", **{_REQUIRED: [term]}), "mine").apart
    assert found.pods.selector == _selects(
        ("app", Operator.IN, "db"), ("rev", Operator.IN, "2"), ("app", Operator.NOT_IN, "web")
    )


def test_a_key_that_the_server_has_merged_already_is_not_added_again() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["2"]}]},
        "matchLabelKeys": ["rev"],
    }
    (found,) = read_neighbours(_affinity("podAffinity", **{_REQUIRED: [term]}), "mine").near
    assert found.pods.selector == _selects(("rev", Operator.IN, "2"))


def test_wishes_to_be_away_weigh_less_than_nothing() -> None:
    wish = {"weight": 5, "podAffinityTerm": {"topologyKey": "zone"}}
    (away,) = read_neighbours(_affinity("podAntiAffinity", **{_PREFERRED: [wish]}), "mine").wishes
    (near,) = read_neighbours(_affinity("podAffinity", **{_PREFERRED: [wish]}), "mine").wishes
    assert (away.weight, near.weight) == (-5, 5)
    assert away.term.pods.selector is None


@pytest.mark.parametrize("weight", [None, 0, -1, 101, 2**62, "5"])
@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity", "nodeAffinity"])
def test_a_wish_weighs_from_1_to_100_as_at_the_api_server(kind: str, weight: Any) -> None:
    def read(weight: Any) -> object:
        said = {"podAffinityTerm": {"topologyKey": "zone"}, "preference": {}}
        pod = _affinity(kind, **{_PREFERRED: [{"weight": weight, **said}]})
        return read_placement(pod) if kind == "nodeAffinity" else read_neighbours(pod, "mine")

    assert read(1) != read(100)
    with pytest.raises(ObjectError, match=rf"^spec.affinity.{kind}.*weight"):
        read(weight)


def test_spread_has_the_defaults_of_the_api() -> None:
    constraint = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 3}
    (found,) = read_neighbours({"spec": {"topologySpreadConstraints": [constraint]}}, "mine").spread
    assert found == SpreadConstraint("zone", 2, hard=False, selector=None)


def test_most_pods_want_nothing_of_others() -> None:
    assert read_neighbours({"spec": {"containers": []}}, "mine") is ALONE
    assert read_pod_volumes({"spec": {"volumes": [{"name": "x", "emptyDir": {}}]}}, "p") is NO_VOLUMES


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    def container(*ports: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"name": "c", "ports": list(ports), **more}

    found = host_ports(
        {
            "spec": {
                "containers": [container({"hostPort": 80}, {"containerPort": 8080}, {"hostPort": 80})],
                "initContainers": [
                    container({"hostPort": 81}),
                    container(
                        {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}, restartPolicy="Always"
                    ),
                ],
            }
        }
    )
    assert found == (HostPort("TCP", ANY_ADDRESS, 80), HostPort("UDP", "10.0.0.1", 53))


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (("TCP", ANY_ADDRESS, 80), ("TCP", "10.0.0.1", 80), True),
        (("TCP", "10.0.0.2", 80), ("TCP", "10.0.0.1", 80), False),
        (("TCP", ANY_ADDRESS, 80), ("UDP", ANY_ADDRESS, 80), False),
        (("TCP", "::", 80), ("TCP", "10.0.0.1", 80), False),
    ],
)
def test_an_address_conflicts_with_itself_and_with_all(
    one: tuple[str, str, int], other: tuple[str, str, int], conflict: bool
) -> None:
    assert (
        HostPort(*one).conflicts(HostPort(*other)) == HostPort(*other).conflicts(HostPort(*one)) == conflict
    )


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("web", "web:latest"),
        ("web:1", "web:1"),
        ("host:5000/web", "host:5000/web:latest"),
        ("web@sha256:0a", "web@sha256:0a"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(written: str, full: str) -> None:
    assert full_name(written) == full


def test_images_of_pods_and_nodes() -> None:
    pod = {"spec": {"initContainers": [{"image": "a"}], "containers": [{"image": "b:1"}, {"image": "b:1"}]}}
    assert pod_images(pod) == ("a:latest", "b:1", "b:1")
    images = [
        {"names": ["a@sha256:0", "a:1"], "sizeBytes": 7},
        {"names": None, "sizeBytes": 1},
        {"names": ["c"]},
    ]
    assert node_images({"status": {"images": images}}) == {"a@sha256:0": 7, "a:1": 7, "c": 0}


def test_volumes_of_a_pod() -> None:
    found = read_pod_volumes(
        {
            "spec": {
                "volumes": [
                    {"name": "x", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                    {"name": "d", "gcePersistentDisk": {"pdName": "pd", "readOnly": True}},
                    {"name": "e", "awsElasticBlockStore": {"volumeID": "vol", "readOnly": True}},
                    {"name": "r", "rbd": {"monitors": ["m1", "m2"], "image": "i"}},
                    {"name": "s", "iscsi": {"iqn": "q"}},
                ]
            }
        },
        "p",
    )
    assert found == PodVolumes(
        (ClaimUse("data"), ClaimUse("p-scratch", ephemeral=True)),
        (
            Disk(("gce", "pd"), read_only=True),
            Disk(("ebs", "vol"), shares=False),
            Disk(("rbd", "m1", "rbd", "i")),
            Disk(("rbd", "m2", "rbd", "i")),
            Disk(("iscsi", "q")),
        ),
    )


def test_a_claim_is_bound_when_the_binding_is_complete() -> None:
    claim: dict[str, Any] = {
        "metadata": {"name": "c", "namespace": "n", "ownerReferences": [{"uid": "u", "controller": True}]},
        "spec": {"volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}},
    }
    half = read_claim(claim)
    assert (half.key, half.volume, half.bound, half.request) == (("n", "c"), "v", False, 1 << 30)
    assert half.storage_class is None
    assert half.owners == {"u"}
    claim["metadata"]["annotations"] = {
        "pv.kubernetes.io/bind-completed": "yes",
        "volume.beta.kubernetes.io/storage-class": "old",
        "volume.kubernetes.io/selected-node": "n1",
    }
    whole = read_claim(claim)
    assert (whole.bound, whole.storage_class, whole.selected_node) == (True, "old", "n1")


def test_what_storage_says() -> None:
    volume = read_volume(
        {
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "2Gi"},
                "claimRef": {"namespace": "n", "name": "c", "uid": "u"},
                "csi": {"driver": "d", "volumeHandle": "h"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": []}},
            },
        }
    )
    assert (volume.size, volume.claim, volume.claim_uid) == (2 << 30, ("n", "c"), "u")
    assert (volume.driver, volume.handle, volume.affinity) == ("d", "h", ())
    storage = read_storage_class(
        {
            "metadata": {"name": "s"},
            "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["z1"]}]}],
        }
    )
    assert storage.waits
    assert storage.topologies is not None
    assert storage.topologies[0].labels[0].values == ("z1",)
    drivers = [{"name": "d", "allocatable": {"count": 3}}, {"name": "e"}]
    assert read_attach_limits({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}) == ("n1", {"d": 3})
    assert read_capacity_tracking({"metadata": {"name": "d"}, "spec": {"storageCapacity": True}}) == (
        "d",
        True,
    )
    attachment = {"nodeName": "n1", "source": {"persistentVolumeName": "v"}}
    assert read_attachment({"metadata": {"name": "a"}, "spec": attachment}) == Attachment("a", "n1", "v")


@pytest.mark.parametrize(
    ("capacity", "largest", "size", "suffices"),
    [(None, None, 1, False), (5, None, 5, True), (5, 2, 3, False), (1, 4, 3, True)],
)
def test_the_largest_volume_counts_before_the_capacity(
    capacity: int | None, largest: int | None, size: int, suffices: bool
) -> None:
    assert StorageCapacity("n", "c", "s", None, capacity, largest).suffices(size) == suffices


def test_a_statement_of_capacity() -> None:
    found = read_storage_capacity(
        {
            "metadata": {"name": "c", "namespace": "n"},
            "storageClassName": "s",
            "capacity": "1Gi",
            "nodeTopology": {},
        }
    )
    assert found == StorageCapacity("n", "c", "s", LabelSelector(), 1 << 30)


@pytest.mark.parametrize(
    ("read", "obj", "place"),
    [
        (
            lambda obj: read_neighbours(obj, "n"),
            {"spec": {"affinity": {"podAffinity": {_REQUIRED: [1]}}}},
            "podAffinity",
        ),
        (
            lambda obj: read_neighbours(obj, "n"),
            {"spec": {"topologySpreadConstraints": [{"maxSkew": "1"}]}},
            "topologySpreadConstraints[0].maxSkew",
        ),
        (host_ports, {"spec": {"containers": [{"ports": [{"hostPort": "80"}]}]}}, "ports.hostPort"),
        (pod_images, {"spec": {"containers": [{"image": 1}]}}, "spec.containers.image"),
        (node_images, {"status": {"images": [{"names": "web"}]}}, "status.images.names"),
        (lambda obj: read_pod_volumes(obj, "p"), {"spec": {"volumes": [{"rbd": 1}]}}, "spec.volumes.rbd"),
        (read_volume, {"spec": {"capacity": {"storage": "much"}}}, "spec.capacity.storage"),
        (read_claim, {"spec": {"selector": {"matchLabels": {"a": 1}}}}, "spec.selector.matchLabels"),
        (read_storage_class, {"allowedTopologies": [1]}, "allowedTopologies"),
        (read_attach_limits, {"spec": {"drivers": [{"allocatable": {"count": "3"}}]}}, "allocatable.count"),
    ],
)
def test_what_is_malformed_says_where(read: Callable[[Any], object], obj: Any, place: str) -> None:
    with pytest.raises(ObjectError) as raised:
        read(obj)
    assert place in str(raised.value)
