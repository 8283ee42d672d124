"""Read: every file of the bundle and of the packs it extends becomes documents."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from koordpolicy.diagnostics import Diagnostics, Fix, Note
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.globs import matches
from koordpolicy.graph.layers import Layer
from koordpolicy.graph.state import State
from koordpolicy.language.documents import Document, read_documents
from koordpolicy.language.foreign import foreign, patches_among
from koordpolicy.language.kinds.bundle import PolicyBundleSpec
from koordpolicy.language.overlays import is_kustomization

_Read: TypeAlias = tuple[Diagnostics, list[Document]]
"""What is wrong with a file, and its documents."""

BUNDLE = "PolicyBundle"
MAX_LAYERS = 16
DEFAULT_PACK = "koordinator"
"""What a directory of policies without a PolicyBundle of its own extends."""


def read(state: State) -> None:
    """Fill `layers` (lowest first), `documents` and `foreign`."""
    own = _documents(state, state.own)
    packs: list[tuple[Layer, list[Document]]] = []
    _extend(state, own, packs, seen=[state.own.name])
    packs.append((state.own, own))
    for level, (layer, documents) in enumerate(packs):
        state.layers.append(layer)
        state.documents.extend((level, document) for document in documents)
    if state.above is not None:
        level = len(state.layers) - 1
        state.documents.extend((level, document) for document in _documents(state, state.above))


def _documents(state: State, layer: Layer) -> list[Document]:
    """The documents of the files that belong to a layer; findings of other files are nobody's concern."""
    read_ones = {
        file: state.cache.get(("read", file, text), partial(_read, file, text))
        for file, text in sorted(layer.files.items())
    }
    documents: list[Document] = []
    chosen = list(_belonging([document for _, read in read_ones.values() for document in read], read_ones))
    others = _others(state, layer, read_ones, chosen) if layer is state.own else {}
    overlays = any(is_kustomization(document) for _, read in read_ones.values() for document in read)
    if overlays or len(others) < len(chosen):  # else somebody means them all to be policies
        state.foreign.update(others)
    for file in chosen:
        if file not in state.foreign:
            found, own = read_ones[file]
            state.found.extend(found)
            documents += own
    return documents


def _others(state: State, layer: Layer, read_ones: Mapping[str, _Read], chosen: list[str]) -> dict[str, str]:
    """The chosen files that are no policies, by what they are; none where the bundle says itself which it includes."""
    documents = [document for _, read in read_ones.values() for document in read]
    spec = next((one.data.get("spec") for one in documents if one.kind == BUNDLE), None)
    if isinstance(spec, dict) and "include" in spec:
        return {}
    known: dict[str, str] = {}
    for file in chosen:
        found, read = read_ones[file]
        text = layer.files[file]
        what = state.cache.get(
            ("foreign", file, text), partial(foreign, text, read, readable=not found.has_errors)
        )
        if what is not None:
            known[file] = what
    return {**known, **patches_among(chosen, documents)}


def _belonging(documents: list[Document], files: Iterable[str]) -> Iterator[str]:
    """The files that the bundle's patterns take; all of them where there is no bundle, or none below it.

    The bundle is the document nearest to the root. Its own file belongs to it always, and so does a file
    that somebody named beside its directory.
    """
    bundles = [document for document in documents if document.kind == BUNDLE]
    bundle = min(bundles, key=lambda document: document.file.count("/"), default=None)
    spec = bundle.data.get("spec") if bundle is not None else None
    if bundle is None or not isinstance(spec, dict):
        yield from files
        return
    directory = bundle.file.rpartition("/")[0]
    prefix = f"{directory}/" if directory else ""
    include = _patterns(spec.get("include"), PolicyBundleSpec.model_fields["include"].default)
    exclude = _patterns(spec.get("exclude"), ())
    for file in files:
        path = file.removeprefix(prefix)
        beside = not file.startswith(prefix)
        chosen = any(matches(one, path) for one in include) and not any(matches(one, path) for one in exclude)
        if beside or chosen or file == bundle.file:
            yield file


def _patterns(written: object, usual: Iterable[str]) -> list[str]:
    """The patterns as written; the usual ones where the document says none, or what the schema will refuse."""
    if not isinstance(written, list):
        return list(usual)
    return [pattern for pattern in written if isinstance(pattern, str)]


def _read(file: str, text: str) -> _Read:
    found = Diagnostics()
    return found, read_documents(file, text, found, mend=True)


def _extend(
    state: State, documents: list[Document], packs: list[tuple[Layer, list[Document]]], seen: list[str]
) -> None:
    """Append the packs below `documents`, deepest first, each once."""
    bundles = [document for document in documents if document.kind == BUNDLE]
    for extra in bundles[1:]:
        first = Note(f"`{bundles[0].name}` is the first", bundles[0].positions.value(("kind",)))
        state.found.add(
            "KP110",
            extra.positions.value(("kind",)),
            "a second `PolicyBundle` in one bundle",
            notes=(first,),
            help="keep one `koordpolicy.yaml` at the root and move the rest into it",
        )
    for name, path in _extends(bundles):
        pack = None if name in seen or len(seen) > MAX_LAYERS else state.packs(name)
        if pack is not None:
            _extend_by(state, name, pack, packs, seen)
        elif path is not None and name not in seen:
            close = nearest(name, [DEFAULT_PACK])
            usual = None if DEFAULT_PACK in seen else state.packs(DEFAULT_PACK)
            if usual is not None:  # most likely meant; else each document would lack what it adds to
                _extend_by(state, DEFAULT_PACK, usual, packs, seen)
            place = bundles[0].positions.value(path)
            state.found.add(
                "KP110",
                place,
                f"there is no pack `{name}`",
                help=f"did you mean `{close}`?" if close else f"the built-in pack is `{DEFAULT_PACK}`",
                fix=Fix(f"change to `{close}`", place, close) if close else None,
            )


def _extend_by(
    state: State, name: str, pack: Layer, packs: list[tuple[Layer, list[Document]]], seen: list[str]
) -> None:
    """Append a pack, which is not there yet, and those below it."""
    seen.append(name)
    below = _documents(state, pack)
    _extend(state, below, packs, seen)
    packs.append((pack, below))


def _extends(bundles: list[Document]) -> list[tuple[str, tuple[str | int, ...] | None]]:
    """The names a bundle extends, with their paths; the default pack where there is no bundle."""
    if not bundles:
        return [(DEFAULT_PACK, None)]
    spec = bundles[0].data.get("spec")
    names = spec.get("extends") if isinstance(spec, dict) else None
    if isinstance(names, str):
        return [(names, ("spec", "extends"))]  # which the schema refuses; meant is a list of it
    if not isinstance(names, list):
        return []
    return [(name, ("spec", "extends", at)) for at, name in enumerate(names) if isinstance(name, str)]
