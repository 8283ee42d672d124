"""The policies that vectors are asked of: the built-in pack, and above it what a user would write."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from koordpolicy import resources
from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.source import read_tree

PACK = Layer("koordinator", read_tree([resources.policies()]).files)

_COMPILER = Compiler({PACK.name: PACK}.get)


def document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A policy document. Keys of the spec without a value (None) are left out."""
    return {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def graph(*documents: Mapping[str, Any]) -> RuleGraph:
    """The graph of a bundle that extends the built-in pack. AssertionError with what is wrong with it."""
    return _compiled(tuple(json.dumps(one) for one in documents))


def graph_of(folders: frozenset[str], *documents: Mapping[str, Any]) -> RuleGraph:
    """The graph of a bundle that extends a few folders of the built-in pack alone, which takes a tenth of the time."""
    return _compiled_of(folders, tuple(json.dumps(one) for one in documents))


def graph_with_line(file: str, old: str, new: str) -> RuleGraph:
    """The graph of the built-in pack with one line of one file changed.

    `file` is the path within `policies/`; `old` and `new` are texts that hold the line, `old` stands there once.
    """
    (path,) = [one for one in PACK.files if one.endswith(f"/policies/{file}")]
    assert PACK.files[path].count(old) == 1, f"`{old}` does not stand exactly once in {file}"
    changed = [one != other for one, other in zip(old.split("\n"), new.split("\n"), strict=True)]
    assert sum(changed) == 1, "one line"
    files = {**PACK.files, path: PACK.files[path].replace(old, new)}
    compilation = Compiler().compile(Layer(PACK.name, files))
    assert compilation.graph is not None, [
        f"{one.code} {one.span} {one.message}" for one in compilation.found
    ]
    return compilation.graph


@lru_cache(maxsize=8)
def _compiler_of(folders: frozenset[str]) -> Compiler:
    files = {
        path: text
        for path, text in PACK.files.items()
        if path.endswith("/koordpolicy.yaml") or path.split("/")[-2] in folders
    }
    return Compiler({PACK.name: Layer(PACK.name, files)}.get)


@lru_cache(maxsize=256)
def _compiled_of(folders: frozenset[str], texts: tuple[str, ...]) -> RuleGraph:
    return _graph(_compiler_of(folders), texts)


@lru_cache(maxsize=256)
def _compiled(texts: tuple[str, ...]) -> RuleGraph:
    return _graph(_COMPILER, texts)


def _graph(compiler: Compiler, texts: tuple[str, ...]) -> RuleGraph:
    # JSON is YAML, and one document a file keeps the places of findings readable.
    files = {f"overlay/{number}.yaml": text for number, text in enumerate(texts)}
    # What vectors ask is what policies say: of what is only checked, nothing depends, and that would take half of the time.
    compilation = compiler.compile(Layer("overlay", files), checked=True)
    assert compilation.graph is not None, [
        f"{one.code} {one.span} {one.message}" for one in compilation.found
    ]
    return compilation.graph
