"""Files that kustomize lays over policies: no policies by themselves, though many look like one.

A patch bears kind and name of what it changes, so it would be taken for a second document of that name. What an
overlay comes to is known once kustomize has made it, and is checked then.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from koordpolicy.language.documents import Document

_GROUP: Final = "kustomize.config.k8s.io"
_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_PATCHES: Final = ("patches", "patchesJson6902", "patchesStrategicMerge")
_PATCH: Final = "a patch of "
_RESOURCES: Final = ("resources", "bases", "components")


def is_kustomization(document: Document) -> bool:
    """Whether a document says what kustomize joins; its apiVersion may be left out where its file says so by name."""
    if document.api_version:
        return document.api_version.partition("/")[0] == _GROUP
    return posixpath.basename(document.file) in _NAMES and any(
        key in document.data for key in (*_PATCHES, *_RESOURCES)
    )


def patches_in(documents: Iterable[Document]) -> Mapping[str, str]:
    """The files that kustomizations name as patches, and none as a resource, with the kustomization of each."""
    known = [document for document in documents if is_kustomization(document)]
    resources = {file for one in known for file in _named(one, _RESOURCES)}
    patches: dict[str, str] = {}
    for one in known:
        for file in _named(one, _PATCHES):
            if file not in resources:
                patches.setdefault(file, one.file)
    return patches


def patch_of(kustomization: str) -> str:
    """What a patch is, in words."""
    return f"{_PATCH}{kustomization}"


def patched_by(what: str) -> str | None:
    """The kustomization of a patch, by what `patch_of` says of it; None of anything else."""
    return what.removeprefix(_PATCH) if what.startswith(_PATCH) else None


def remedy(kustomization: str) -> str:
    """How what a kustomization makes is checked, as a command."""
    return f"kubectl kustomize {posixpath.dirname(kustomization) or '.'} | koordpolicy check -"


def _named(document: Document, keys: Iterable[str]) -> Iterator[str]:
    """The files that stand under the keys, as paths beside the kustomization's own."""
    folder = posixpath.dirname(document.file)
    for key in keys:
        items = document.data.get(key)
        for item in items if isinstance(items, list) else ():
            path = item.get("path") if isinstance(item, dict) else item
            if isinstance(path, str):
                yield posixpath.normpath(posixpath.join(folder, path))
