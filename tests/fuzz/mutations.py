"""Ways to change an input: texts by lines and tokens, JSON by its structure."""

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.hostile.objects import LEAVES

_PIECES = (
    "", " ", "\n", "\t", "---\n", ": ", "- ", "{", "}", "[", "]", ",", "'", '"', "|", ">", "&a ", "*a", "<<: *a", "!!int ", "#",
    "?", "? ", "%YAML 1.1\n", "\\u0000", "\\ud800", "\ud7ff", "\u202e", "\x1b[31m", "\xa0", "\ufeff", "é", "🦀", "null", "true",
    "0", "-1", "1e999", "9" * 40, "0x" + "f" * 20, "9223372036854775808", "-9223372036854775809", "18446744073709551616u", "nan",
    "(", ")", "((((((((", "))))))))", "&&", "||", "?", ":", "==", "!=", "<", "+", "-", "*", "/", "%", ".", "?.", "[?",
    "has(", "cel.bind(x, ", "cel", "dyn(", "optional.of(", ".or(", ".orValue(", ".map(x, ", ".filter(x, ", ".exists(x, x", ".size()",
    "matches('(a+)+$')", "'%s'.format([", "timestamp('9999-12-31T23:59:59Z')", "duration('1e9h')", "quantity('9e999')",
    "lists.range(100000)", "regex.replace('a','(a*)*','b')", "math.greatest(", "node.", "pod.labels", "node.pods", "variables.x",
    "parameters.y", "{cel: ", "now", "string(", "bytes(", "int(", "double(", "1 / 0", "type(", "sets.contains(", "base64.decode('",
)  # fmt: skip
"""What may matter to a reader of policies or expressions."""


def mutate_text(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with some changes; now and then made of two."""
    text = chance.choice(seeds).decode("utf-8", "replace")
    for _ in range(chance.choice((1, 1, 2, 3, 5, 8))):
        text = chance.choice(_TEXT_CHANGES)(chance, text, seeds)[:200_000]
    return text.encode("utf-8", "replace")


def _insert(chance: Random, text: str, _: Sequence[bytes]) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(_PIECES) + text[at:]


def _remove(chance: Random, text: str, _: Sequence[bytes]) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + text[at + chance.choice((1, 1, 2, 5, 20, 100)) :]


def _replace(chance: Random, text: str, seeds: Sequence[bytes]) -> str:
    return _insert(chance, _remove(chance, text, seeds), seeds)


def _repeat(chance: Random, text: str, _: Sequence[bytes]) -> str:
    at, length = chance.randint(0, len(text)), chance.choice((1, 2, 3, 10, 50))
    return text[:at] + text[at : at + length] * chance.choice((2, 2, 3, 10, 100, 1000)) + text[at + length :]


def _splice(chance: Random, text: str, seeds: Sequence[bytes]) -> str:
    other = chance.choice(seeds).decode("utf-8", "replace")
    return text[: chance.randint(0, len(text))] + other[chance.randint(0, len(other)) :]


def _line(chance: Random, text: str, _: Sequence[bytes]) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    line = lines.pop(chance.randrange(len(lines)))
    if chance.random() < 0.7:
        lines.insert(chance.randint(0, len(lines)), chance.choice(("", "  ", "    ")) + line)
    return "".join(lines)


def _wrap(chance: Random, text: str, _: Sequence[bytes]) -> str:
    opening, closing = chance.choice(
        (("(", ")"), ("[", "]"), ("{a: ", "}"), ("!", ""), ("- ", ""), ("cel.bind(a, [a, a], ", ")"))
    )
    times = chance.choice((1, 5, 60, 400))
    at, end = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
    return text[:at] + opening * times + text[at:end] + closing * times + text[end:]


def _character(chance: Random, text: str, _: Sequence[bytes]) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chr(chance.choice((chance.randrange(128), chance.randrange(0xD800)))) + text[at + 1 :]


_TEXT_CHANGES: tuple[Callable[[Random, str, Sequence[bytes]], str], ...] = (
    _insert, _insert, _remove, _replace, _replace, _repeat, _splice, _line, _line, _wrap, _character,
)  # fmt: skip


def mutate_json(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, a JSON text, with some values replaced, removed, moved or blown up."""
    document = json.loads(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        document = _changed(chance, document, seeds)
    return json.dumps(document).encode()


def _changed(chance: Random, document: Any, seeds: Sequence[bytes]) -> Any:
    places = list(_places(document))
    if not places:
        return copy.deepcopy(chance.choice(LEAVES))
    holder, key = chance.choice(places)
    match chance.randrange(8):
        case 0 | 1 | 2 | 3:
            holder[key] = copy.deepcopy(chance.choice(LEAVES))
        case 4:
            del holder[key]
        case 5:
            donor, there = chance.choice(places)
            holder[key] = json.loads(json.dumps(donor.get(there) if isinstance(donor, dict) else None))
        case 6:
            other = list(_places(json.loads(chance.choice(seeds))))
            if other:
                donor, there = chance.choice(other)
                holder[key] = donor[there]
        case _:
            value = holder[key]
            if isinstance(value, str):
                holder[key] = value * chance.choice((0, 2, 300)) + chance.choice(("", "\x00", "é", "9"))
            elif isinstance(value, list):
                holder[key] = value * chance.choice((0, 2, 50))
            elif isinstance(value, dict):
                value[chance.choice(("", "a", "x" * 300, "\u202e"))] = copy.deepcopy(chance.choice(LEAVES))
            else:
                holder[key] = [value]
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) below a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        held = waiting.pop()
        keys: Sequence[Any] = (
            list(held) if isinstance(held, dict) else range(len(held)) if isinstance(held, list) else ()
        )
        for key in keys:
            found.append((held, key))
            waiting.append(held[key])
    return found


def mutate_bytes(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with bytes changed, cut, repeated or spliced."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 2, 4, 8))):
        at = chance.randint(0, len(data))
        match chance.randrange(5):
            case 0:
                data[at:at] = chance.randbytes(chance.choice((1, 2, 16)))
            case 1:
                del data[at : at + chance.choice((1, 4, 64))]
            case 2:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                data[at:at] = data[at : at + 32] * chance.choice((1, 10, 500))
            case _:
                other = chance.choice(seeds)
                data[at:] = other[chance.randint(0, len(other)) :]
    return bytes(data[:300_000])
