"""Files beside policies that are none: manifests, kustomizations, values, workflows, templates of Helm.

A directory of policies often holds some, and they are nobody's concern here. But a policy with a slip in its first
lines must never pass for one of them: only what says by itself that it is something else is foreign.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document, read_documents
from koordpolicy.language.kinds import API_VERSION, KINDS
from koordpolicy.language.overlays import patch_of, patches_in

_OURS: Final = re.compile(
    r"""apiversion["']?\s*:\s*["']?(?!(?:slo|config|quota|scheduling|analysis)\.koordinator\.sh/)[^\s"',}\]]*koord""",
    re.IGNORECASE,
)
"""Even in a file that cannot be read: it speaks of our kinds. Koordinator's objects do not, though kinds of both are called alike."""

_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_GROUP: Final = API_VERSION.partition("/")[0]
_HEAD: Final = ("apiVersion", "kind", "metadata", "spec")
"""Keys of a policy. What has one of them, or nearly, may be meant as one."""


def speaks_of_policies(text: str) -> bool:
    """Whether a text, readable or not, has an `apiVersion` that is ours, or is meant as ours."""
    return _OURS.search(text) is not None


def foreign(text: str, documents: Iterable[Document], *, readable: bool) -> str | None:
    """What a file is, in a word or two, where it is no policy for sure; None where it is one, or may be meant as one.

    `documents` are those of the file; `readable` says whether all of it could be read.
    """
    if speaks_of_policies(text):
        return None
    if not readable:
        return "a template" if _TEMPLATE.search(text) else None
    found = [_other(document) for document in documents]
    return found[0] if found and None not in found else None


def foreign_files(files: Mapping[str, str]) -> dict[str, str]:
    """Those of the files, by path, that are no policies for sure, with what they are."""
    known: dict[str, str] = {}
    every: list[Document] = []
    for file, text in files.items():
        found = Diagnostics()
        documents = read_documents(file, text, found)
        what = foreign(text, documents, readable=not found.has_errors)
        if what is not None:
            known[file] = what
            every += documents
    return {**known, **patches_among(files, every)}


def patches_among(files: Container[str], documents: Iterable[Document]) -> dict[str, str]:
    """Those of the files that kustomizations among the documents lay over others, with what they are."""
    return {file: patch_of(of) for file, of in patches_in(documents).items() if file in files}


def _other(document: Document) -> str | None:
    """What a single document is, where it is no policy for sure."""
    if not document.api_version:
        return None if any(_is_near(key, _HEAD) for key in document.data) else "no `apiVersion`"
    group, slash, _ = document.api_version.partition("/")
    if _is_near(group, [_GROUP]):
        return None
    # `Rollout` of argoproj.io is not ours. What has no group of its own (`v1`, `apps/v1`) may be a slip.
    if (not slash or "." not in group) and _is_near(document.kind, KINDS):
        return None
    return document.kind or None


def _is_near(name: str, candidates: Iterable[str]) -> bool:
    known = list(candidates)
    return name in known or nearest(name, known) is not None
