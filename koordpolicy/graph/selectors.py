"""Label selectors of a match as requirements and as CEL, so that one engine decides them."""

import json
from collections.abc import Iterator

from koordpolicy.graph.rules import Requirement
from koordpolicy.language.kinds import LabelSelector, Match

ROOT_OF = {"nodes": "node", "namespaces": "namespaceObject", "pods": "pod"}
"""Which record's labels each selector of a match asks."""


def requirements(match: Match | None) -> tuple[Requirement, ...]:
    """All lines of all selectors, in a stable order."""
    if match is None:
        return ()
    return tuple(line for field, root in ROOT_OF.items() for line in _lines(getattr(match, field), root))


def _lines(selector: LabelSelector | None, root: str) -> Iterator[Requirement]:
    if selector is None:
        return
    for key, value in sorted(selector.match_labels.items()):
        yield Requirement(root, key, "In", (value,))
    for line in selector.match_expressions:
        yield Requirement(root, line.key, line.operator, tuple(sorted(line.values)))


def as_cel(lines: tuple[Requirement, ...]) -> str | None:
    """The requirements as one CEL condition; None when there is none."""
    return " && ".join(map(_line, lines)) or None


def _line(line: Requirement) -> str:
    labels = f"{line.root}.labels"
    key = json.dumps(line.key)
    present = f"{key} in {labels}"
    if line.operator == "Exists":
        return present
    if line.operator == "DoesNotExist":
        return f"!({present})"
    values = ", ".join(json.dumps(value) for value in line.values)
    found = f"{labels}[{key}] == {values}" if len(line.values) == 1 else f"{labels}[{key}] in [{values}]"
    if line.operator == "In":
        return f"({present} && {found})"
    return f"!({present} && {found})"


_WORDS = {"node": "nodes", "namespaceObject": "namespaces", "pod": "pods"}


def in_words(lines: tuple[Requirement, ...]) -> str | None:
    """The requirements for a person: `nodes with pool=a, pods without tier`; None when there is none."""
    parts = []
    for root, plural in _WORDS.items():
        own = [_worded(line) for line in lines if line.root == root]
        if own:
            parts.append(f"{plural} {' and '.join(own)}")
    return ", ".join(parts) or None


def _worded(line: Requirement) -> str:
    if line.operator == "Exists":
        return f"with {line.key}"
    if line.operator == "DoesNotExist":
        return f"without {line.key}"
    values = "|".join(line.values)
    return f"with {line.key}={values}" if line.operator == "In" else f"without {line.key}={values}"
