"""A policy object of the cluster as the text it could have been applied from, and back from lines to fields.

Only what the author says is written: what the server and delivery tools add would change the text, and with it the
digest, at every sync.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.model.reading import mapping, texts
from koordpolicy.model.reading import text as text_of

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_KEY: Final = re.compile(r"^( *)((?:- )*)(?:\"((?:[^\"\\]|\\.)*)\"|([^\s\"#][^:]*?)):(?: |$)")

DELIVERY: Final = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "reconcile.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "config.kubernetes.io/",
    "internal.config.kubernetes.io/",
    "koordpolicy.io/revision",
)
"""Annotations and labels that tools put on what they deliver; they say nothing about the policy."""

_MANAGED_BY: Final = frozenset({"app.kubernetes.io/managed-by", "app.kubernetes.io/instance"})


def manifest_path(kind: str, name: str) -> str:
    """The path of an object in the tree of texts."""
    return f"{kind}/{name}.yaml"


def manifest(obj: Mapping[str, Any]) -> str:
    """The object as YAML: apiVersion, kind, what the author said in metadata, and all else but the status.

    Raises ObjectError for what is not the shape of an object, RecursionError for what is nested too deep.
    """
    said = mapping(obj, "metadata")
    metadata: dict[str, Any] = {"name": text_of(said, "name", "metadata")}
    for field in ("labels", "annotations"):
        kept = {key: value for key, value in texts(said, field, "metadata").items() if not _delivered(key)}
        if kept:
            metadata[field] = dict(sorted(kept.items()))
    document: dict[str, Any] = {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "metadata": metadata,
    }
    for key, value in obj.items():
        if key not in document and key != "status":
            document[key] = value
    return "\n".join(_mapping(document, 0)) + "\n"


def field_at(text: str, line: int) -> str:
    """The path of the field that a line of a manifest (from 1) belongs to, such as `spec.target.cel`."""
    trail: list[tuple[int, str]] = []
    counts: dict[int, int] = {}
    literal: int | None = None
    for number, content in enumerate(text.split("\n"), 1):
        indent = len(content) - len(content.lstrip(" "))
        inside = literal is not None and (not content.strip() or indent > literal)
        if not inside:
            literal = None
            _step(content, indent, trail, counts)
            if content.endswith(("|", "|-", "|+")) and trail:
                literal = trail[-1][0]
        if number == line:
            break
    path = ""
    for _, step in trail:
        path += step if step.startswith("[") else f".{step}"
    return path.removeprefix(".")


def _step(content: str, indent: int, trail: list[tuple[int, str]], counts: dict[int, int]) -> None:
    """Move the trail to where a line stands."""
    rest, at = content[indent:], indent
    if rest:
        while trail and trail[-1][0] >= at:
            trail.pop()
        for deeper in [known for known in counts if known > at]:
            del counts[deeper]
    if not rest.startswith("-"):
        counts.pop(at, None)
    while rest.startswith("- ") or rest == "-":
        counts[at] = counts.get(at, -1) + 1
        trail.append((at, f"[{counts[at]}]"))
        rest, at = rest[2:], at + 2
    found = _KEY.match(rest)
    if found is not None:
        trail.append((at, json.loads(f'"{found[3]}"') if found[3] is not None else found[4]))


def _delivered(key: str) -> bool:
    return key in _MANAGED_BY or key.startswith(DELIVERY)


def _mapping(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    for key, inner in value.items():
        yield from _entry(f"{'  ' * depth}{_word(str(key))}:", inner, depth)


def _entry(head: str, value: Any, depth: int) -> Iterator[str]:
    """A key, and its value on the same line or below it."""
    if isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        yield head
        yield from _items(value, depth + 1)
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        inside = "  " * (depth + 1)
        yield from (f"{inside}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _items(values: Sequence[Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for value in values:
        if (
            isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str))
        ) and value:
            inner = _mapping(value, depth + 1) if isinstance(value, Mapping) else _items(value, depth + 1)
            first = next(inner)
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from inner
        elif isinstance(value, str) and _is_block(value):
            yield from _entry(f"{indent}-", value, depth)
        else:
            yield f"{indent}- {_scalar(value)}"


def _is_block(text: str) -> bool:
    """Whether a text reads well, and comes back the same, as a block of lines."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    return (
        len(lines) > 1
        and not body.endswith("\n")
        and not lines[0].startswith((" ", "\t"))
        and bool(lines[0])
        and all(line.isprintable() or not line for line in lines)
        and not any(line != "" and not line.strip() for line in lines)
    )


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _word(value)
    return json.dumps(value, ensure_ascii=False)


def _word(text: str) -> str:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
