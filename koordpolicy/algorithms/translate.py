"""Resources of pods under other names: native cpu and memory as those of an overcommitted band.

All functions take a pod as the API's JSON and return a new one that shares what did not change.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from koordpolicy.model.protocol import CPU, EXTENDED_RESOURCE_SPEC
from koordpolicy.model.quantity import QuantityError, canonical_text, milli_text, parse_quantity
from koordpolicy.model.reading import Json, ObjectError, embedded_object, mapping, objects, texts

_LISTS: Final = ("requests", "limits")
_written: Final = json.JSONEncoder(separators=(",", ":")).encode


def translate_pod(pod: Json, names: Mapping[str, str]) -> Json:
    """The pod with resources renamed in all containers and the overhead.

    `names` gives the band's name for each native resource; nothing happens when it is empty. A cpu amount
    becomes a whole number of millicores. An amount that already stands under the new name is
    overwritten. Afterwards a limit without a request is the request too. Raises ObjectError.
    """
    if not names:
        return pod
    spec = dict(mapping(pod, "spec"))
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [
                _translate_container(container, names, f"spec.{key}[{index}]")
                for index, container in enumerate(objects(spec, key, "spec"))
            ]
    if spec.get("overhead"):
        spec["overhead"] = translate_resources(mapping(spec, "overhead", "spec"), names, "spec.overhead")
    return {**pod, "spec": spec}


def translate_resources(resources: Json, names: Mapping[str, str], at: str = "") -> dict[str, object]:
    """A resource list with the names replaced. Raises ObjectError for an unreadable cpu amount."""
    translated = {name: value for name, value in resources.items() if name not in names}
    for native, name in names.items():
        if native in resources:
            value = resources[native]
            translated[name] = _text(milli_text, value, at, native) if native == CPU else value
    return translated


def extended_spec(pod: Json, resources: Collection[str]) -> dict[str, dict[str, dict[str, str]]]:
    """What each regular container has of these resources, as canonical text.

    Container name → requests and limits → resource → quantity; empty parts are left out.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for index, container in enumerate(objects(mapping(pod, "spec"), "containers", "spec")):
        at = f"spec.containers[{index}]"
        declared = mapping(container, "resources", at)
        parts = {}
        for key in _LISTS:
            amounts = mapping(declared, key, at)
            part = {
                name: _text(canonical_text, amounts[name], at, name) for name in resources if name in amounts
            }
            if part:
                parts[key] = part
        if parts:
            found[str(container.get("name", ""))] = parts
    return found


def with_extended_spec(pod: Json, resources: Collection[str]) -> Json:
    """The pod with the annotation that tells agents its containers' extended resources.

    The annotation is written only when it says something else than the containers; a stale one becomes
    empty. Raises ObjectError when the present annotation is malformed.
    """
    spec = extended_spec(pod, resources)
    metadata = mapping(pod, "metadata")
    annotations = texts(metadata, "annotations", "metadata")
    present = annotations.get(EXTENDED_RESOURCE_SPEC)
    if not spec if present is None else _values(spec) == _values(read_extended_spec(present)):
        return pod
    text = _written({"containers": dict(sorted(spec.items()))} if spec else {})
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, EXTENDED_RESOURCE_SPEC: text}},
    }


def read_extended_spec(source: str) -> dict[str, dict[str, dict[str, str]]]:
    """The content of the annotation in the form of `extended_spec`. Raises ObjectError."""
    declared = mapping(embedded_object(source, EXTENDED_RESOURCE_SPEC), "containers", EXTENDED_RESOURCE_SPEC)
    read: dict[str, dict[str, dict[str, str]]] = {}
    for name in declared:
        container = mapping(declared, name, EXTENDED_RESOURCE_SPEC)
        read[name] = {
            key: {
                resource: _text(canonical_text, value, f"{EXTENDED_RESOURCE_SPEC}.{name}", resource)
                for resource, value in mapping(container, key, f"{EXTENDED_RESOURCE_SPEC}.{name}").items()
            }
            for key in _LISTS
            if container.get(key)
        }
    return read


def _translate_container(container: Json, names: Mapping[str, str], at: str) -> Json:
    resources = dict(mapping(container, "resources", at))
    if not any(resources.get(key) for key in _LISTS):
        return container
    for key in _LISTS:
        if resources.get(key):
            resources[key] = translate_resources(mapping(resources, key, at), names, f"{at}.{key}")
    limits = mapping(resources, "limits", at)
    requests = mapping(resources, "requests", at)
    unrequested = _limited_only(requests, limits, tuple(names.values()))
    if unrequested:
        resources["requests"] = {**requests, **unrequested}
    return {**container, "resources": resources}


def _limited_only(requests: Json, limits: Json, names: Sequence[str]) -> dict[str, object]:
    return {name: limits[name] for name in names if name in limits and name not in requests}


def _values(spec: Mapping[str, Mapping[str, Mapping[str, str]]]) -> object:
    """The spec by value: `1k` and `1000` are the same."""
    return {
        name: {
            key: {resource: parse_quantity(text).nanos for resource, text in part.items()}
            for key, part in parts.items()
        }
        for name, parts in spec.items()
    }


def _text(of: Callable[[object], str], value: object, at: str, resource: str) -> str:
    try:
        return of(value)
    except QuantityError as error:
        raise ObjectError(f"{at}.{resource}: {error}") from error
