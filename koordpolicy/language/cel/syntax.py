"""What a text must keep to before it is an expression: limits, words, and the one syntax error."""

from collections.abc import Mapping
from types import MappingProxyType

MAX_SOURCE = 50_000
"""Code points of one expression."""

MAX_NODES = 20_000
"""Nodes of one syntax tree."""

MAX_DEPTH = 100
"""Levels of one syntax tree. The language asks for 32; recursion over a tree stays this shallow."""

MAX_TYPED_DEPTH = 2 * MAX_DEPTH
"""Levels of one typed expression, the bodies of Library functions in place of their calls."""

KEYWORDS = frozenset(("true", "false", "null", "in"))
"""Words with a meaning of their own, never a name or a field."""

RESERVED = frozenset(
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
        "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
"""Words kept for host languages: no variable or global function, but a field or a method."""

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "if": "write `condition ? a : b`",
        "else": "write `condition ? a : b`",
        "namespace": "the namespace of a pod is called `namespaceObject`",
    }
)
"""What to write in place of a reserved word, where there is something."""


class SyntaxProblem(Exception):
    """The text is no expression. `start:end` are code-point offsets into it.

    `code` is KP201 (syntax), KP210 (a number out of its type's range) or KP211 (too long or deep).
    `replacement` is a text that mends it in the place of `start:end`, where there is just one.
    """

    def __init__(
        self,
        message: str,
        start: int,
        end: int,
        help: str | None = None,
        code: str = "KP201",
        *,
        replacement: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.code = code
        self.replacement = replacement
