"""The record of a node's kernel files under policy, for people: group by group, with the rule and line behind each value."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.model.quantity import Notation, Quantity

_INDENT: Final = "    "
_SETTLED: Final = frozenset({"equal", "remembered"})
_WIDTH: Final = 80
_LEAST: Final = 40
_MANY: Final = 10 << 20
"""Bytes from which on nobody wants to know them all."""


class NotARecord(ValueError):
    """What was read is no record of a node; the message says why."""


def checked_record(found: object) -> Mapping[str, Any]:
    """What was read, if it is a record. Raises `NotARecord`."""
    if not isinstance(found, Mapping):
        raise NotARecord("a record of a node is a JSON object")
    for key, kind in (("node", str), ("usage", dict), ("files", list), ("evictions", list), ("notes", list)):
        if not isinstance(found.get(key), kind):
            raise NotARecord(f"`{key}` is missing, or is not what a record of a node has there")
    for at, one in enumerate(found["files"]):
        known = isinstance(one, Mapping) and isinstance(one.get("file"), str) and "wanted" in one
        if not known or not isinstance(one.get("rules"), list):
            raise NotARecord(f"`files[{at}]` is no kernel file with its value and rules")
    return found


def explanation_text(record: Mapping[str, Any], width: int = _WIDTH) -> str:
    """A page of that width."""
    width = max(width, _LEAST)
    lines = [
        *_wrapped(
            f"node {record['node']}, {record.get('pods', '?')} pods, policies {record.get('revision')}", width
        )
    ]
    use = record["usage"]
    if use:
        lines.append(f"uses {use.get('cpu', '?')}m CPU, {_memory(use.get('memory'))} memory")
    if not record["files"]:
        lines += ["", "no kernel file is under policy now"]
    for group, files in _by_group(record["files"]).items():
        lines += ["", _cut(group or "the node", width)]
        for one in files:
            lines += _file(one, width)
    for title, said in (
        ("pods that would go" if record.get("dryRun") else "pods that go", _evictions(record["evictions"])),
        ("notes", record["notes"]),
        ("what is wrong", [f"{name}: {why}" for name, why in (record.get("troubles") or {}).items()]),
    ):
        if said:
            lines += ["", title, *(line for one in said for line in _wrapped(str(one), width, "  "))]
    return "\n".join(lines)


def _memory(used: object) -> str:
    """Bytes as people read them: in Mi where there are many."""
    if not isinstance(used, int):
        return "?" if used is None else str(used)
    return str(Quantity.of(used if used < _MANY else used >> 20 << 20, Notation.BINARY))


def _by_group(files: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in files:
        found.setdefault(str(one.get("group", "")), []).append(one)
    return dict(sorted(found.items()))


def _file(one: Mapping[str, Any], width: int) -> Iterator[str]:
    outcome = str(one.get("outcome", ""))
    change = "" if outcome in _SETTLED else f" ({outcome})"
    name = one["file"].rpartition("/")[2] if one.get("group") else one["file"]
    held = one["wanted"] if one.get("held") is None else one["held"]
    yield from _wrapped(f"{name} = {held}{change}", width, "  ")
    if str(held) != str(one["wanted"]):
        yield from _told("asked", f"{one['wanted']}, of which the kernel makes what stands above", width)
    now = one.get("now")
    if now is not None and str(now) != str(held):
        yield from _told("now", str(now), width)
    yield from _told("because", str(one.get("reason", "")), width)
    for rule in one["rules"]:
        yield from _told(
            "by", f"{rule.get('decision')}, {rule.get('file')}:{rule.get('line')}:{rule.get('column')}", width
        )
    if one.get("problem"):
        yield from _told("but", str(one["problem"]), width)


def _evictions(evictions: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{one.get('pod')} for {one.get('reason')}" for one in evictions]


def _told(word: str, said: str, width: int) -> Iterator[str]:
    yield from _wrapped(said, width, f"{_INDENT}{word:9}")


def _wrapped(said: str, width: int, head: str = "") -> Iterator[str]:
    """Lines of that width, the later ones below the first one's text."""
    yield from textwrap.wrap(said, width, initial_indent=head, subsequent_indent=" " * len(head)) or [
        head.rstrip()
    ]


def _cut(path: str, width: int) -> str:
    """A path with its middle left out where it is too long: both ends tell which it is."""
    if len(path) <= width:
        return path
    kept = (width - 1) // 2
    return f"{path[:kept]}…{path[kept + 1 - width :]}"
