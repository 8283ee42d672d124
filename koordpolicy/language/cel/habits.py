"""Habits from other languages: what is often written, and how CEL says it."""

from collections.abc import Sequence

from koordpolicy.language.cel.lexer import Token

_WORDS = {
    "and": ("&&", "write `&&`"),
    "or": ("||", "write `||`"),
    "not": (None, "write `!` before the condition"),
    "is": ("==", "write `==`"),
    "if": (None, "write `condition ? a : b`"),
    "else": (None, "write `condition ? a : b`"),
    "then": (None, "write `condition ? a : b`"),
    "mod": ("%", "write `%`"),
    "div": ("/", "write `/`"),
    "like": (None, "write `text.matches('pattern')`"),
    "matches": (None, "write `text.matches('pattern')`"),
    "contains": (None, "write `text.contains('part')` or `'element' in list`"),
    "startsWith": (None, "write `text.startsWith('part')`"),
    "endsWith": (None, "write `text.endsWith('part')`"),
    "between": (None, "write `low <= x && x <= high`"),
}
"""Words that stand between operands elsewhere: what replaces them where that is all, and the advice."""

_CALLS = {
    "len": "size(x)",
    "length": "size(x)",
    "count": "size(x)",
    "get": "m[?key].orValue(other)",
    "getOrDefault": "m[?key].orValue(other)",
    "keys": "m.map(key, key)",
    "values": "m.map(key, m[key])",
    "any": "list.exists(x, x > 0)",
    "some": "list.exists(x, x > 0)",
    "every": "list.all(x, x > 0)",
    "includes": "'element' in list",
    "toLowerCase": "text.lowerAscii()",
    "lower": "text.lowerAscii()",
    "toUpperCase": "text.upperAscii()",
    "upper": "text.upperAscii()",
    "startswith": "text.startsWith('part')",
    "endswith": "text.endsWith('part')",
    "strip": "text.trim()",
    "test": "text.matches('pattern')",
    "match": "text.matches('pattern')",
    "str": "string(x)",
    "float": "double(x)",
    "round": "math.round(x)",
    "floor": "math.floor(x)",
    "ceil": "math.ceil(x)",
    "abs": "math.abs(x)",
    "avg": "list.sum() / size(list)",
    "mean": "list.sum() / size(list)",
    "now": "now",
    "year": "now.getFullYear()",
    "month": "now.getMonth()",
    "day": "now.getDate()",
    "weekday": "now.getDayOfWeek()",
    "hour": "now.getHours()",
    "hours": "now.getHours()",
    "minute": "now.getMinutes()",
    "minutes": "now.getMinutes()",
    "second": "now.getSeconds()",
}
"""Functions and fields of other languages, and how CEL says what they do."""


def called_elsewhere(name: str) -> str | None:
    """How CEL writes what a function or a field of this name does in other languages."""
    return _CALLS.get(name)


_NUMBERS = frozenset(("int", "double"))


def habit(stream: Sequence[Token], at: int) -> tuple[str | None, str | None]:
    """For an unexpected token: the text to put in its place, if that mends it, and the advice."""
    token = stream[at]
    before = stream[at - 1] if at >= 1 else None
    if token.kind == "quoted":
        return (
            f"'{token.value}'",
            "texts stand in `'` or `\"`; backticks are for names of fields, behind a dot",
        )
    if token.kind == "name" and before is not None:
        word = str(token.value)
        if word == "not" and stream[at + 1].kind == "in":
            return None, "write `!(x in list)`"
        if word in _WORDS:
            return _WORDS[word]
        if before.kind == "name" and before.value == "not":
            return None, _WORDS["not"][1]
    if before is None:
        return None, None
    if before.kind == "%" and at >= 2 and stream[at - 2].kind in _NUMBERS:
        number = stream[at - 2].value
        return None, f"a percentage is written `percent({number:g})`" if isinstance(
            number, int | float
        ) else None
    pair = before.kind + token.kind if before.end == token.start else ""
    return _PAIRS.get(pair, (None, None))


_PAIRS: dict[str, tuple[str | None, str | None]] = {
    "<>": (None, "write `!=`"),
    "??": (None, 'write `a.orValue(b)` with an optional, such as `node.usage.total.?cpu.orValue(cpu("0"))`'),
    "!in": (None, "write `!(x in list)`"),
    "**": (None, "there is no power: multiply"),
    "->": (None, "write a macro: `list.map(x, x + 1)`"),
    "||||": (None, "join strings with `+`"),
    "++": (None, "write `+ 1`"),
}
"""Two operators in a row that mean something elsewhere."""
