"""What every object must look like in its metadata, whatever its kind."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Cause, Invalid, Rejected
from koordpolicy.kube.memory.types import check_types
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.selectors import is_label_key, is_label_value

MAX_ANNOTATIONS: Final = 256 * 1024
"""How many characters all annotations of an object may have together."""

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")
_SYSTEM_FINALIZERS: Final = frozenset({"foregroundDeletion", "orphan"})

_cached_key = lru_cache(maxsize=16_384)(is_label_key)
_cached_value = lru_cache(maxsize=65_536)(is_label_value)


def identify(draft: dict[str, Any], resource: Resource, namespace: str | None) -> None:
    """Complete what says which object this is: apiVersion, kind, namespace.

    Rejected when the object says something else than the request, or has fields of the wrong type.
    """
    for field, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if draft.setdefault(field, wanted) != wanted:
            raise Rejected(f"the object is of `{field}` `{draft[field]}`, {resource} has `{wanted}`")
    check_types(draft, resource)
    metadata = draft.setdefault("metadata", {})
    stated = metadata.get("namespace") or None
    if not resource.namespaced:
        if stated or namespace:
            raise Rejected(f"{resource} live in no namespace, found `{stated or namespace}`")
        metadata.pop("namespace", None)
        return
    if stated and namespace and stated != namespace:
        raise Rejected(f"the object's namespace `{stated}` is not the request's `{namespace}`")
    metadata["namespace"] = stated or namespace or "default"


def check_metadata(draft: Mapping[str, Any], resource: Resource) -> None:
    """Invalid with all causes when names, labels, annotations, owners or finalizers break the API's rules."""
    metadata = draft["metadata"]
    causes: list[Cause] = []
    _check_name(metadata, resource, causes)
    _check_labels(metadata.get("labels") or {}, causes)
    _check_annotations(metadata.get("annotations") or {}, causes)
    _check_owners(metadata.get("ownerReferences") or (), causes)
    causes.extend(
        Cause("metadata.finalizers", f"`{finalizer}` is not a qualified name")
        for finalizer in metadata.get("finalizers") or ()
        if finalizer not in _SYSTEM_FINALIZERS and not _cached_key(finalizer)
    )
    if causes:
        raise invalid(resource, str(metadata.get("name", "")), causes)


def invalid(resource: Resource, name: str, causes: list[Cause]) -> Invalid:
    """The error for an object with these faults."""
    return Invalid(f"{resource.kind} `{name}` is invalid: {'; '.join(map(str, causes))}", tuple(causes))


def is_subdomain(name: object) -> bool:
    """Whether this can be an object's name: lower-case alphanumeric parts joined by dots, at most 253 long."""
    return isinstance(name, str) and len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_dns_label(name: object) -> bool:
    """Whether this can name a namespace or a container: at most 63 of a-z, 0-9 and inner `-`."""
    return isinstance(name, str) and _LABEL.fullmatch(name) is not None


def _check_name(metadata: Mapping[str, Any], resource: Resource, causes: list[Cause]) -> None:
    name = metadata.get("name")
    if not name:
        causes.append(Cause("metadata.name", "an object needs a name, or `generateName`"))
    elif resource == resources.NAMESPACES:
        if not is_dns_label(name):
            causes.append(
                Cause("metadata.name", f"`{name}` is not a DNS label: at most 63 of a-z, 0-9, inner `-`")
            )
    elif not is_subdomain(name):
        causes.append(
            Cause(
                "metadata.name",
                f"`{name}` is not a name: a-z, 0-9, inner `-` and `.`, at most 253 characters",
            )
        )


def _check_labels(labels: Mapping[str, str], causes: list[Cause]) -> None:
    for key, value in labels.items():
        if not _cached_key(key):
            causes.append(Cause("metadata.labels", f"`{key}` is not a qualified name"))
        if not _cached_value(value):
            causes.append(
                Cause(
                    f"metadata.labels[{key}]",
                    f"`{value}` is not a label value: text of at most 63 of A-Z, a-z, 0-9, `-_.`",
                )
            )


def _check_annotations(annotations: Mapping[str, str], causes: list[Cause]) -> None:
    total = 0
    for key, value in annotations.items():
        if not _cached_key(key.lower()):
            causes.append(Cause("metadata.annotations", f"`{key}` is not a qualified name"))
        total += len(key) + len(value)
    if total > MAX_ANNOTATIONS:
        causes.append(Cause("metadata.annotations", f"longer than {MAX_ANNOTATIONS} characters in all"))


def _check_owners(owners: Any, causes: list[Cause]) -> None:
    controllers = 0
    for owner in owners:
        missing = [field for field in _OWNER_FIELDS if not owner.get(field)]
        if missing:
            causes.append(Cause("metadata.ownerReferences", f"an owner lacks {', '.join(missing)}"))
        else:
            controllers += owner.get("controller") is True
    if controllers > 1:
        causes.append(Cause("metadata.ownerReferences", "at most one owner can be the controller"))
