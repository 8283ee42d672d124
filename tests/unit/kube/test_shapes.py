"""Shapes of objects beside what a real API server says of its types."""

from collections.abc import Iterator
from typing import Any

from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.shapes import shape_of
from koordpolicy.model.shapes import Shape
from tests.parts.shared import SharedServer

BUILT_IN = [
    resource
    for resource in vars(resources).values()
    if isinstance(resource, Resource) and not resource.custom and resource.group != "apiextensions.k8s.io"
]


def differences(shape: Shape, schema: Any, definitions: Any, at: str) -> Iterator[str]:
    """Where strategic merge would do something else than the server's type says."""
    if "$ref" in schema:
        schema = {**schema, **definitions[schema["$ref"].rpartition("/")[2]]}
    strategies = schema.get("x-kubernetes-patch-strategy", "").split(",")
    merges, key = "merge" in strategies, schema.get("x-kubernetes-patch-merge-key", "")
    theirs = ((merges and key) or "", merges and not key, "replace" in strategies)
    ours = (shape.key, shape.unique, shape.replace)
    if ours != theirs:
        yield f"{at}: key, unique, replace are {theirs}, not {ours}"
    if "items" in schema and not key:
        return  # the list is replaced, and what its items hold is never merged
    inner = schema.get("items", schema)
    if "$ref" in inner:
        inner = definitions[inner["$ref"].rpartition("/")[2]]
    if shape.null is not None:
        values = inner["additionalProperties"]
        quantity = values.get("$ref", "").endswith(".Quantity")
        if not quantity and (values.get("type"), "format" in values) != ("string", False):
            yield f"{at}: no map of texts or amounts"
        elif shape.null != ("0" if quantity else ""):
            yield f"{at}: null counts as {'0' if quantity else ''!r}, not {shape.null!r}"
    for name, member in inner.get("properties", {}).items():
        yield from differences(shape.below(name), member, definitions, f"{at}.{name}")


def test_strategic_merge_knows_the_keys_of_the_servers_types(apiserver: SharedServer) -> None:
    code, document = apiserver.request("GET", "/openapi/v2")
    assert code == 200
    found: dict[str, list[str]] = {}
    for name, schema in document["definitions"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            found.setdefault(f"{kind['group']}/{kind['version']}/{kind['kind']}", []).append(name)
    wrong = []
    for resource in BUILT_IN:
        said = f"{resource.group}/{resource.version}/{resource.kind}"
        if resource.gated and said not in found:
            continue
        [name] = found[said]
        schema = document["definitions"][name]
        wrong += list(differences(shape_of(resource), schema, document["definitions"], resource.kind))
    assert wrong == []
