"""YAML faults in the words of the person who has to mend them."""

from koordpolicy.language.documents.faults import SyntaxFault

_WORDS: tuple[tuple[str, str, str | None], ...] = (
    (
        "mapping values are not allowed",
        "a `:` cannot begin a value here",
        "quote the text if the `: ` belongs to it, or check the indentation",
    ),
    ("found character '\\t'", "a tab cannot indent or begin a value", "use spaces"),
    ("found character '@'", "`@` cannot begin a plain value", "quote the value"),
    ("found character '`'", "a backtick cannot begin a plain value", "quote the value"),
    ("found character '%'", "`%` cannot begin a plain value", "quote the value"),
    (
        "could not find expected ':'",
        "a key without `:`",
        "write `key: value`; a text of several lines needs `|` or quotes",
    ),
    ("found unexpected end of stream", "the quoted text has no closing quote", None),
    ("found unexpected document separator", "the quoted text has no closing quote", None),
    (
        "expected <block end>",
        "the indentation fits no block that is open here",
        "align it with its neighbours",
    ),
    ("expected ',' or ']'", "the list has no `,` or `]` here", "separate elements by `,` and close with `]`"),
    (
        "expected ',' or '}'",
        "the mapping has no `,` or `}` here",
        "separate entries by `,` and close with `}`",
    ),
    (
        "sequence entries are not allowed",
        "a list element cannot begin here",
        "put the `-` on a line of its own, indented below the key",
    ),
    ("expected the node content", "a value is missing here", None),
    (
        "expected alphabetic or numeric",
        "an anchor or alias needs a name",
        "quote the value if it begins with `*` or `&`",
    ),
    (
        "found unknown escape",
        "an escape that YAML does not know",
        "double the backslash, or use single quotes",
    ),
    (
        "found a character beyond",
        "an escape beyond U+10FFFF, where the characters end",
        "write the character itself",
    ),
    ("found a number with too many digits", "a number with too many digits", None),
    ("expected escape sequence", "an escape with too few hexadecimal digits", None),
    ("expected chomping or indentation", "after `|` and `>` only `+`, `-` and a digit may stand", None),
    ("expected indentation indicator", "the indentation of a block text is 1 to 9", None),
    (
        "more indented follow up line",
        "the text begins further right than a blank line before it says",
        "remove the spaces from the blank lines above",
    ),
    ("found undefined tag handle", "a tag whose handle is not declared", "remove the tag"),
    ("found duplicate anchor", "an anchor of the same name stands before", None),
    ("but found another document", "a second document without `---`", None),
    (
        "did not find expected <document start>",
        "content after the end of the document",
        "begin a new document with `---`",
    ),
    (
        "expected '<document start>'",
        "content after the end of the document",
        "begin a new document with `---`",
    ),
)
_CONTEXTS: tuple[tuple[str, str], ...] = (
    ("quoted scalar", "the text begins here"),
    ("simple key", "the key begins here"),
    ("block mapping", "the mapping begins here"),
    ("block collection", "the list begins here"),
    ("block sequence", "the list begins here"),
    ("flow sequence", "the list begins here"),
    ("flow mapping", "the mapping begins here"),
)


TEMPLATE = "`{{` begins a template, which is not YAML"
HIDDEN_END = (
    "`#` begins a comment, which hides the bracket that closes",
    "close the bracket before it, or quote the text if `#` belongs to it",
)
"""Message and help."""
RENDER_FIRST = "render it first, as `helm template` does, or leave the file out by the bundle's `exclude`"


def template_in(line: str) -> int | None:
    """Where a template's braces begin in a line, if they do."""
    at = line.find("{{")
    return at if at >= 0 else None


def explain_fault(fault: SyntaxFault) -> tuple[str, str | None, str | None]:
    """Message, help, and the phrase for the place where the faulty construct began."""
    note = next((words for part, words in _CONTEXTS if part in fault.context), None)
    for part, message, help in _WORDS:
        if part in fault.problem:
            return message, help, note
    return f"this is not YAML: {fault.problem.lower().rstrip('.')}", None, note
