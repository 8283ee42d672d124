"""The part of a policy tree that one component can need: the documents of its kinds, each in its place."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph import Layer
from koordpolicy.graph.layers import PackFinder
from koordpolicy.language.documents.manifests import read_manifests
from koordpolicy.language.documents.split import split
from koordpolicy.language.facts.table import Component
from koordpolicy.language.kinds import KINDS
from koordpolicy.runtime.policies.packs import find_pack

_NEVER: Final = frozenset({"Invariant", "PolicyTest", "Rollout"})
"""Whoever publishes a revision has proved and tested it, and let it go live."""
_EXCEPTION: Final = "PolicyException"
_KIND: Final = re.compile(r"^kind: *([A-Za-z]+) *(?:#.*)?$", re.MULTILINE)
_NO_LINE: Final = re.compile(r"[^\n]+")


def kinds_for(component: Component) -> frozenset[str]:
    """The kinds that a component asks, with those that say what they mean."""
    return frozenset(
        name
        for name, kind in KINDS.items()
        if name not in _NEVER and (component in kind.components or not kind.components)
    )


def part_of(files: Mapping[str, str], kinds: frozenset[str]) -> dict[str, str]:
    """The files that hold documents of some kinds, every other document's lines left empty: places stay what they were.

    Exceptions stay, and whatever kinds their overrides name. What cannot be read stays for the compiler to tell of.
    """
    wanted = kinds | _overridden(files)
    found = {}
    for path, text in files.items():
        parts = list(split(text))
        if any(_is_of(part, wanted) for _, part in parts):
            found[path] = _only(text, parts, lambda part: _is_of(part, wanted))
    return found


def pack_part(kinds: frozenset[str]) -> PackFinder:
    """The finder of built-in packs that gives only the part of some kinds."""

    @cache
    def find(name: str) -> Layer | None:
        layer = find_pack(name)
        return None if layer is None else Layer(layer.name, part_of(layer.files, kinds))

    return find


def _only(text: str, parts: list[tuple[int, str]], keep: Callable[[str], bool]) -> str:
    pieces, at = [], 0
    for start, part in parts:
        pieces.append(text[at:start])
        pieces.append(part if keep(part) else _emptied(part))
        at = start + len(part)
    return "".join([*pieces, text[at:]])


def _emptied(part: str) -> str:
    """As many lines, the marker at its beginning kept."""
    marker = "---" if part.startswith("---") else ""
    return marker + _NO_LINE.sub("", part[len(marker) :])


def _is_of(part: str, kinds: frozenset[str]) -> bool:
    kind = _kind_of(part)
    return kind in kinds or kind not in KINDS


def _kind_of(part: str) -> str:
    """The kind of a document; "" where it says none that can be read."""
    found = _KIND.search(part)
    if found is not None:
        return found[1]
    for document in read_manifests("part", part, Diagnostics()):
        return str(document.data.get("kind", ""))
    return "" if part.strip().strip("-") else "PolicyTest"


def _overridden(files: Mapping[str, str]) -> frozenset[str]:
    kinds: set[str] = set()
    for path, text in files.items():
        if _EXCEPTION in text:
            for document in read_manifests(path, text, Diagnostics()):
                spec = document.data.get("spec")
                if document.data.get("kind") == _EXCEPTION and isinstance(spec, Mapping):
                    overrides = spec.get("overrides")
                    names = overrides if isinstance(overrides, Mapping) else ()
                    kinds.update(re.split(r"[/.\[]", str(name), maxsplit=1)[0] for name in names)
    return frozenset(kinds) & KINDS.keys()
