"""What is shipped in `deploy/`, applied to a test's API server as `kubectl apply --server-side` does."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache as for_good
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from ruamel.yaml import YAML

from tests.parts import cache
from tests.parts.apiserver import SYSTEM_NAMESPACE, Access, ApiServer
from tests.parts.processes import Ended
from tests.parts.table import find

Document: TypeAlias = Mapping[str, Any]

DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
_FOLDERS: Final = ("crds", "rbac")
_DEPLOYED: Final = "deployed"
_FIRST: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role")
"""Kinds that others need, in order."""


WITHOUT: Final = "KOORDPOLICY_WITHOUT"
"""The variable that takes a permission out of the roles: `ClusterRole/NAME VERB PLURAL.GROUP/SUBRESOURCE`."""


class DeployedServer(ApiServer):
    """An API server with all definitions and roles of `deploy/`, which it finds in its data: applying them takes it as long as
    starting, and is done once, for all that are started until something of it changes. Takes the arguments of `ApiServer`.
    """

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(_data(), self.folder / "etcd")
        self.access.once(_DEPLOYED, lambda: None)
        return super().__enter__()


def _data() -> Path:
    """What an API server has in its store that had all of it applied; it is there afterwards, under a key of what it was made of."""
    files = sorted(file for name in _FOLDERS for file in (DEPLOY / name).glob("*.yaml"))
    programs = [str(find(name).path) for name in ("etcd", "kube-apiserver")]
    key = cache.content_key(*programs, os.environ.get(WITHOUT, ""), *(file.read_bytes() for file in files))
    place = cache.directory() / f"deployed-{key}"
    with cache.lock(place.with_suffix(".lock")):
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=place.parent) as name, ApiServer(Path(name)) as server:
                _install(server.access)
                server.leave().rename(place)
    return place


def install(access: Access) -> None:
    """Apply all definitions and roles of `deploy/`, once for a server; the definitions are served afterwards."""
    access.once(_DEPLOYED, lambda: _install(access))


def _install(access: Access) -> None:
    apply(access, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}])
    for name in _FOLDERS:
        apply(access, manifests(DEPLOY / name))


def manifests(folder: Path) -> Iterator[Document]:
    """The objects in a folder's files; what is there for kustomize itself is left out."""
    for file in sorted(folder.glob("*.yaml")):
        if file.name != "kustomization.yaml":
            yield from map(_without, _documents(file.read_text("utf-8")))


@lru_cache(maxsize=64)
def _documents(text: str) -> tuple[Document, ...]:
    """What a file says; read once, as it takes a while."""
    return tuple(document for document in YAML(typ="safe").load_all(text) if document)


def _without(document: Document) -> Document:
    """A role without what a run is to do without; other documents as they are."""
    role, _, permission = os.environ.get(WITHOUT, "").partition(" ")
    if not permission or f"{document['kind']}/{document['metadata']['name']}" != role:
        return document
    verb, _, resource = permission.partition(" ")
    plural, _, subresource = resource.partition("/")
    name, _, group = plural.partition(".")
    named = f"{name}/{subresource}" if subresource else name
    rules = []
    for rule in document["rules"]:
        if group not in rule["apiGroups"] or named not in rule["resources"] or verb not in rule["verbs"]:
            rules.append(rule)
            continue
        others = {
            "verbs": [one for one in rule["verbs"] if one != verb],
            "resources": [one for one in rule["resources"] if one != named],
            "apiGroups": [one for one in rule["apiGroups"] if one != group],
        }
        # What is left of the rule: its other verbs; of this verb its other resources; of this resource its other groups.
        left = [
            {**rule, "verbs": others["verbs"]},
            {**rule, "verbs": [verb], "resources": others["resources"]},
            {**rule, "verbs": [verb], "resources": [named], "apiGroups": others["apiGroups"]},
        ]
        rules += [one for one in left if one["verbs"] and one["resources"] and one["apiGroups"]]
    return {**document, "rules": rules}


def apply(access: Access, documents: Iterable[Document]) -> None:
    """Server-side apply, those that others need first; waits until definitions are served. Raises Ended."""
    ordered = sorted(
        documents, key=lambda one: _FIRST.index(one["kind"]) if one["kind"] in _FIRST else len(_FIRST)
    )
    definitions = [one for one in ordered if one["kind"] == "CustomResourceDefinition"]
    others = [one for one in ordered if one["kind"] != "CustomResourceDefinition"]
    for document in definitions:
        _apply(access, document)
    for document in definitions:
        _await_served(access, document)
    for document in others:
        _apply(access, document)


def path_of(access: Access, document: Document) -> str:
    """Where the API has the object of a document."""
    version, metadata = document["apiVersion"], document["metadata"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural, namespaced = _resource(access, base, document["kind"])
    place = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
    return f"{base}{place}/{plural}/{metadata['name']}"


def _apply(access: Access, document: Document) -> None:
    path = path_of(access, document)
    status, answer = access.request("PATCH", f"{path}?fieldManager=test&force=true", document)
    if status not in {200, 201}:
        message = answer.get("message") if isinstance(answer, dict) else answer
        raise Ended(f"{path} is refused: {status} {message}")


@for_good
def _resource(access: Access, base: str, kind: str) -> tuple[str, bool]:
    status, answer = access.request("GET", base)
    if status != 200:
        raise Ended(f"{base} is not served: {status}")
    for resource in answer["resources"]:
        if resource["kind"] == kind and "/" not in resource["name"]:
            return resource["name"], resource["namespaced"]
    raise Ended(f"{base} has no {kind}")


def _await_served(access: Access, definition: Document) -> None:
    until = time.monotonic() + 60
    spec = definition["spec"]
    plural = spec["names"]["plural"]
    for version in (version["name"] for version in spec["versions"] if version["served"]):
        path = f"/apis/{spec['group']}/{version}/{plural}?limit=1"
        while access.request("GET", path)[0] != 200:
            if time.monotonic() > until:
                raise Ended(f"{path} is not served after a minute")
            time.sleep(0.05)
