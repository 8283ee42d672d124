"""The table of resources."""

import pytest

from koordpolicy.kube.resources import (
    CONFIG_MAPS,
    NODE_METRICS,
    PODS,
    POLICIES,
    RESOURCES,
    Resource,
    custom,
    resource_of,
)


def test_nothing_stands_twice() -> None:
    assert len({(entry.api_version, entry.kind) for entry in RESOURCES}) == len(RESOURCES)
    assert len({(entry.group, entry.plural) for entry in RESOURCES}) == len(RESOURCES)


@pytest.mark.parametrize("resource", RESOURCES, ids=str)
def test_every_entry_is_well_formed(resource: Resource) -> None:
    assert resource.plural == resource.plural.lower()
    assert resource.plural.startswith(resource.kind.lower()[:-1])
    assert resource.kind[0].isupper()
    assert resource.version.startswith("v")
    assert resource.custom <= resource.strict_update
    assert resource_of(resource.api_version, resource.kind) is resource


def test_names_and_versions() -> None:
    assert (PODS.api_version, PODS.name) == ("v1", "pods")
    assert NODE_METRICS.api_version == "slo.koordinator.sh/v1alpha1"
    assert str(NODE_METRICS) == "nodemetrics.slo.koordinator.sh"
    assert PODS.has_status
    assert not CONFIG_MAPS.has_status
    assert resource_of("v1", "Gizmo") is None


def test_policies_are_cluster_scoped_and_have_a_status() -> None:
    assert all(not entry.namespaced and entry.has_status for entry in POLICIES)


def test_custom_resources_follow_their_api_version() -> None:
    gizmo = custom("example.org/v1", "Gizmo")
    assert (gizmo.group, gizmo.version, gizmo.plural, gizmo.namespaced) == (
        "example.org",
        "v1",
        "gizmos",
        False,
    )
    assert gizmo.custom
