"""The types of the fields that the server itself reads, so that wrong ones are refused at the door.

An API server decodes every object into the types of its kind. Here only the fields that something relies
on are described; the others are stored as they come. null means unset, as it does there.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Rejected
from koordpolicy.kube.resources import Resource
from koordpolicy.model.quantity import INT64_MAX, INT64_MIN, QuantityError, parse_quantity

Check: TypeAlias = Callable[[Any, str], None]
"""Raises Rejected unless the value has the type; takes nulls out of it. The text is the value's place."""


def _wrong(at: str, wanted: str, value: Any) -> Rejected:
    return Rejected(f"`{at.removeprefix('.')}` must be {wanted}, found {value!r:.100}")


def _text(value: Any, at: str) -> None:
    if type(value) is not str:
        raise _wrong(at, "text", value)


def _integer(value: Any, at: str) -> None:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        raise _wrong(at, "a whole number of 64 bits", value)


def _truth(value: Any, at: str) -> None:
    if type(value) is not bool:
        raise _wrong(at, "true or false", value)


def _count_or_text(value: Any, at: str) -> None:
    if type(value) is not str:
        _integer(value, at)


def _quantity(value: Any, at: str) -> None:
    try:
        parse_quantity(value)
    except QuantityError as error:
        raise _wrong(at, f"a quantity ({error})", value) from error


def _list_of(check: Check) -> Check:
    def check_list(value: Any, at: str) -> None:
        if not isinstance(value, list):
            raise _wrong(at, "a list", value)
        for index, item in enumerate(value):
            check(item, f"{at}[{index}]")

    return check_list


def _map_of(check: Check) -> Check:
    def check_map(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(at, "a map", value)
        for key, item in value.items():
            check(item, f"{at}[{key}]")

    return check_map


def _object(**fields: Check) -> Check:
    def check_object(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(at, "a map", value)
        for name, check in fields.items():
            if name in value:
                if value[name] is None:
                    del value[name]
                else:
                    check(value[name], f"{at}.{name}")

    return check_object


_TEXTS: Final = _map_of(_text)
_AMOUNTS: Final = _map_of(_quantity)
_ANY_MAP: Final = _object()
_NAMED: Final = _object(name=_text)
_CONDITIONS: Final = _list_of(_object(type=_text, status=_text, reason=_text, message=_text))

_METADATA: Final = _object(
    name=_text,
    generateName=_text,
    namespace=_text,
    uid=_text,
    resourceVersion=_text,
    generation=_integer,
    creationTimestamp=_text,
    deletionTimestamp=_text,
    deletionGracePeriodSeconds=_integer,
    labels=_TEXTS,
    annotations=_TEXTS,
    finalizers=_list_of(_text),
    ownerReferences=_list_of(
        _object(
            apiVersion=_text, kind=_text, name=_text, uid=_text, controller=_truth, blockOwnerDeletion=_truth
        )
    ),
    managedFields=_list_of(_ANY_MAP),
)

_CONTAINERS: Final = _list_of(
    _object(
        name=_text,
        image=_text,
        restartPolicy=_text,
        command=_list_of(_text),
        args=_list_of(_text),
        env=_list_of(_NAMED),
        ports=_list_of(_object(name=_text, containerPort=_integer, protocol=_text)),
        volumeMounts=_list_of(_object(name=_text, mountPath=_text)),
        volumeDevices=_list_of(_object(name=_text, devicePath=_text)),
        resources=_object(requests=_AMOUNTS, limits=_AMOUNTS),
    )
)

_POD_SPEC: Final = _object(
    nodeName=_text,
    schedulerName=_text,
    restartPolicy=_text,
    dnsPolicy=_text,
    serviceAccountName=_text,
    hostNetwork=_truth,
    priority=_integer,
    priorityClassName=_text,
    preemptionPolicy=_text,
    terminationGracePeriodSeconds=_integer,
    activeDeadlineSeconds=_integer,
    nodeSelector=_TEXTS,
    overhead=_AMOUNTS,
    resources=_object(requests=_AMOUNTS, limits=_AMOUNTS),
    affinity=_ANY_MAP,
    tolerations=_list_of(_ANY_MAP),
    schedulingGates=_list_of(_NAMED),
    topologySpreadConstraints=_list_of(_ANY_MAP),
    volumes=_list_of(_NAMED),
    imagePullSecrets=_list_of(_NAMED),
    hostAliases=_list_of(_object(ip=_text)),
    resourceClaims=_list_of(_NAMED),
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
)

_SELECTOR: Final = _object(matchLabels=_TEXTS, matchExpressions=_list_of(_object(values=_list_of(_text))))
_STATUS: Final = _object(conditions=_CONDITIONS)


def _kind(**fields: Check) -> Check:
    return _object(metadata=_METADATA, **{"spec": _ANY_MAP, "status": _STATUS, **fields})


_TEMPLATED: Final = _kind(
    spec=_object(replicas=_integer, selector=_ANY_MAP, template=_object(metadata=_METADATA, spec=_POD_SPEC))
)
_ORDINARY: Final = _kind()
_CUSTOM: Final = _kind(status=_ANY_MAP)

_KINDS: Final[Mapping[Resource, Check]] = MappingProxyType(
    {
        resources.PODS: _kind(
            spec=_POD_SPEC,
            status=_object(
                phase=_text,
                podIP=_text,
                qosClass=_text,
                nominatedNodeName=_text,
                conditions=_CONDITIONS,
                podIPs=_list_of(_object(ip=_text)),
                containerStatuses=_list_of(_NAMED),
                initContainerStatuses=_list_of(_NAMED),
            ),
        ),
        resources.NODES: _kind(
            spec=_object(unschedulable=_truth, podCIDRs=_list_of(_text), taints=_list_of(_ANY_MAP)),
            status=_object(
                capacity=_AMOUNTS,
                allocatable=_AMOUNTS,
                conditions=_CONDITIONS,
                addresses=_list_of(_object(type=_text, address=_text)),
            ),
        ),
        resources.NAMESPACES: _kind(
            spec=_object(finalizers=_list_of(_text)), status=_object(phase=_text, conditions=_CONDITIONS)
        ),
        resources.CONFIG_MAPS: _kind(data=_TEXTS, binaryData=_TEXTS, immutable=_truth),
        resources.SECRETS: _kind(data=_TEXTS, type=_text, immutable=_truth),
        resources.SERVICES: _kind(
            spec=_object(selector=_TEXTS, ports=_list_of(_object(port=_integer, protocol=_text)))
        ),
        resources.PRIORITY_CLASSES: _kind(
            value=_integer, globalDefault=_truth, preemptionPolicy=_text, description=_text
        ),
        resources.POD_DISRUPTION_BUDGETS: _kind(
            spec=_object(
                minAvailable=_count_or_text,
                maxUnavailable=_count_or_text,
                selector=_SELECTOR,
                unhealthyPodEvictionPolicy=_text,
            ),
            status=_object(
                observedGeneration=_integer,
                currentHealthy=_integer,
                desiredHealthy=_integer,
                expectedPods=_integer,
                disruptionsAllowed=_integer,
                disruptedPods=_TEXTS,
                conditions=_CONDITIONS,
            ),
        ),
        resources.DEPLOYMENTS: _TEMPLATED,
        resources.REPLICA_SETS: _TEMPLATED,
        resources.STATEFUL_SETS: _TEMPLATED,
        resources.DAEMON_SETS: _TEMPLATED,
        resources.JOBS: _TEMPLATED,
        resources.REPLICATION_CONTROLLERS: _TEMPLATED,
    }
)


def check_types(draft: dict[str, Any], resource: Resource) -> None:
    """Rejected, with the place, for fields of the wrong type. Nulls of described fields are taken out of the draft."""
    _KINDS.get(resource, _CUSTOM if resource.custom else _ORDINARY)(draft, "")
