"""Constants of the typed form, with the keys by which equal ones are recognised.

A value may share its parts many times over (`[a, a]`, and that in a list again), so that written out it would be
longer than any memory. Keys of lists, maps and optionals are therefore digests over the digests of the parts, each
shared part visited once.
"""

from hashlib import blake2b

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import NONE, Optional, Value

_DIGEST_SIZE = 16


def constant(type: Type, value: Value, start: int = 0, end: int = 0) -> ir.Const:
    """A constant; its key tells 1, 1.0, 1u and true apart."""
    return ir.Const(type, value, f"{type}:{text_of(value)}", start=start, end=end)


def text_of(value: Value) -> str:
    """A text that equal values of one class have in common, and unequal ones have not; short for large structures."""
    return _digest(value) if isinstance(value, _CONTAINERS) else repr(value)


_CONTAINERS = (list, tuple, dict, Optional)


def _digest(root: Value) -> str:
    known: dict[int, str] = {}
    # The root holds all parts, so that no identity is given away twice meanwhile.
    stack: list[tuple[Value, bool]] = [(root, False)]
    while stack:
        value, ready = stack.pop()
        if id(value) in known:
            continue
        parts = _parts(value)
        if ready:
            texts = (known[id(part)] if isinstance(part, _CONTAINERS) else repr(part) for part in parts)
            known[id(value)] = _joined(value, list(texts))
        else:
            stack.append((value, True))
            stack.extend((part, False) for part in parts if isinstance(part, _CONTAINERS))
    return known[id(root)]


def _parts(value: Value) -> list[Value]:
    match value:
        case dict():
            return [part for entry in value.items() for part in entry]
        case Optional():
            return [] if value is NONE else [value.value]
    return list(value)  # type: ignore[call-overload, no-any-return]


def _joined(value: Value, texts: list[str]) -> str:
    """The digest of a class and its parts' texts. Lengths stand before the texts, so that none runs into the next."""
    hashed = blake2b(digest_size=_DIGEST_SIZE)
    kind = "map" if isinstance(value, dict) else "optional" if isinstance(value, Optional) else "list"
    hashed.update(f"{kind} {len(texts)}".encode())
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        hashed.update(b" %d " % len(encoded))
        hashed.update(encoded)
    return f"{kind}#{hashed.hexdigest()}"
