"""Text of others in comments as GitHub and GitLab show them: nothing in it is Markdown or HTML, a link, a reference, or calls anybody.

Both look for mentions and references in what Markdown has become, where escapes are gone: only in code they look for none.
"""

import re
from collections.abc import Callable
from html import escape
from typing import Final

from koordpolicy.diagnostics.escaping import one_line

_HARMLESS: Final = re.compile(r"[A-Za-z0-9 ,%'-]+")
_MARKS: Final = re.compile(r"[!-,:-@\[-`{-~]|(?<=www)\.", re.IGNORECASE)
"""ASCII's punctuation but `-`, `.` and `/`, which mean nothing within a line; the dot makes a link of what begins with `www`."""
_ACTIVE: Final = re.compile(
    r"[@#~$]|://|[!&%^](?=[\w\"])|\b[A-Z]{2,}-\d|\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|(?i:www\.|mailto:|xmpp:)"
)
"""What makes a word more than text: who is called (`@all`), strike-through, formulas, addresses, issues and the like (`#1`, `!1`,
`&1`, `%1`, `~label`, `GH-1`), commits.
"""
_ESCAPED: Final = re.compile(r"[\\`*_\[\]<>|]")
_AROUND: Final = re.compile(r"(\(?)(.*?)([):,;.]*)")
"""What stands around a word in a sentence, and is no part of it."""


def code(text: str) -> str:
    """Text as code, whatever it holds: in `<code>` Markdown still has links and the like, so their marks become entities."""
    return f"<code>{_MARKS.sub(lambda mark: f'&#{ord(mark[0])};', one_line(text))}</code>"


def ticked(text: str) -> str:
    """Text as code that reads as it is, in a table too: nothing in it ends the code or the cell."""
    return "`" + _on_one_line(text).replace("`", "'").replace("|", "\\|") + "`"


def name(text: str) -> str:
    """A name: as it is where nothing in it can be markup, else as code."""
    return text if _HARMLESS.fullmatch(text) else code(text)


def plain(text: str) -> str:
    """Text that reads as text on one line; words that would be more than that are code."""
    return _by_word(text, lambda word: _ESCAPED.sub(r"\\\g<0>", word.replace("&", "&amp;")))


def within_html(text: str) -> str:
    """The same between tags, where there is no Markdown."""
    return _by_word(text, escape)


def _by_word(text: str, shown: Callable[[str], str]) -> str:
    return " ".join(
        _coded(word) if _ACTIVE.search(word) else shown(word) for word in _on_one_line(text).split()
    )


def _coded(word: str) -> str:
    parts = _AROUND.fullmatch(word)
    return code(word) if parts is None else f"{parts[1]}{code(parts[2])}{parts[3]}"


def _on_one_line(text: str) -> str:
    return one_line(" ".join(text.split()))
