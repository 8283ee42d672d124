"""How the objects of each resource merge."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource
from koordpolicy.model import shapes
from koordpolicy.model.shapes import Shape

_SHAPES: Final[Mapping[Resource, Shape]] = MappingProxyType(
    {
        resources.PODS: shapes.POD,
        resources.NODES: shapes.NODE,
        resources.SERVICES: shapes.SERVICE,
        resources.CONFIG_MAPS: shapes.CONFIG_MAP,
        resources.CSI_NODES: shapes.CSI_NODE,
        resources.POD_DISRUPTION_BUDGETS: shapes.POD_DISRUPTION_BUDGET,
        resources.DEPLOYMENTS: shapes.TEMPLATED,
        resources.REPLICA_SETS: shapes.TEMPLATED,
        resources.STATEFUL_SETS: shapes.TEMPLATED,
        resources.DAEMON_SETS: shapes.TEMPLATED,
        resources.JOBS: shapes.TEMPLATED,
        resources.REPLICATION_CONTROLLERS: shapes.TEMPLATED,
        resources.MUTATING_WEBHOOKS: shapes.WEBHOOK_CONFIGURATION,
        resources.VALIDATING_WEBHOOKS: shapes.WEBHOOK_CONFIGURATION,
        resources.VALIDATING_POLICIES: shapes.ADMISSION_POLICY,
        resources.MUTATING_POLICIES: shapes.MUTATING_POLICY,
        resources.POLICY_REVISIONS: shapes.POLICY_REVISION,
        **dict.fromkeys(resources.POLICIES, shapes.ORDINARY),
    }
)


def shape_of(resource: Resource) -> Shape:
    """How objects of this resource merge. Lists of others' custom resources are replaced as a whole."""
    return _SHAPES.get(resource) or (shapes.CUSTOM if resource.custom else shapes.ORDINARY)
