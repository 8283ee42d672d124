"""The two webhook configurations of a cluster, as a revision of the policies wants them. A pure function, no I/O."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import Operation
from koordpolicy.manager.webhooks.scope import Expression, Scope
from koordpolicy.manager.webhooks.webhook import Phase, Webhook
from koordpolicy.model.protocol import CONTROL_PLANE

CONFIGURATION: Final = "koordpolicy"
"""The name of both."""
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_SHORTEST, _LONGEST = 1, 30
"""Seconds that an API server may be told to wait."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where API servers find the webhooks: a Service in our own namespace, or the beginning of a URL."""

    namespace: str
    service: str
    port: int = 443
    url: str = ""

    def client(self, path: str, authority: str) -> dict[str, Any]:
        """The `clientConfig` of a path; `authority` is a bundle in base64, empty for one that somebody else injects."""
        trusted = {"caBundle": authority} if authority else {}
        if self.url:
            return {**trusted, "url": f"{self.url.rstrip('/')}{path}"}
        service = {"name": self.service, "namespace": self.namespace, "path": path, "port": self.port}
        return {**trusted, "service": service}


def configurations(
    graph: RuleGraph,
    webhooks: Sequence[Webhook],
    address: Address,
    authority: bytes,
    native: frozenset[str] = frozenset(),
) -> dict[Phase, list[dict[str, Any]]]:
    """The `webhooks` of each configuration; one that policies have nothing to say for is left out.

    `native` are the targets (`AdmissionRule/NAME`) that API servers decide by themselves.
    """
    bundle = base64.b64encode(authority).decode()
    found: dict[Phase, list[dict[str, Any]]] = {phase: [] for phase in Phase}
    for webhook in webhooks:
        beside = webhook.scope_beside
        scope = beside(graph, native) if beside is not None and native else webhook.scope(graph)
        if scope is not None:
            found[webhook.phase].append(_entry(webhook, scope, address, bundle))
    return found


def _entry(webhook: Webhook, scope: Scope, address: Address, bundle: str) -> dict[str, Any]:
    """One webhook with all that an API server would fill in, so that what is there can be compared with it."""
    operations = [one for one in Operation if one in webhook.operations and one in scope.operations]
    fail_open = webhook.fail_open if scope.fail_open is None else scope.fail_open
    namespaced = any(resource.namespaced for resource in webhook.resources)
    entry: dict[str, Any] = {
        "name": f"{webhook.name}.koordpolicy.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": address.client(webhook.path, bundle),
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "resources": [
                    f"{resource.plural}/{sub}" if sub else resource.plural for sub in webhook.subresources
                ],
                "operations": [str(one) for one in operations],
                "scope": "*",
            }
            for resource in webhook.resources
        ],
        "failurePolicy": "Ignore" if fail_open else "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": _selector((*(spared(address) if namespaced else ()), *scope.namespaces)),
        "objectSelector": _selector(scope.objects),
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": min(max(scope.timeout, _SHORTEST), _LONGEST),
    }
    if scope.condition:
        entry["matchConditions"] = [{"name": "policies-may-apply", "expression": scope.condition}]
    if webhook.phase is Phase.MUTATING:
        entry["reinvocationPolicy"] = "Never"
    return entry


NO_CONTROL_PLANE: Final[Expression] = {"key": CONTROL_PLANE, "operator": "DoesNotExist"}
"""Namespaces that policies on pods may speak of."""


def spared(address: Address) -> tuple[Expression, ...]:
    """Which namespaces may wait for us; in the others lives what brings us back after a failure."""
    return (
        NO_CONTROL_PLANE,
        {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": [address.namespace]},
    )


def _selector(expressions: Sequence[Expression]) -> Mapping[str, Any]:
    return {"matchExpressions": list(expressions)} if expressions else {}
