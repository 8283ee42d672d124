"""The Markdown of a comment: marked as ours, no longer than services take, and never an order to one."""

import re
from typing import Final

from koordpolicy.diagnostics.escaping import safe

_LONGEST: Final = 60_000
"""Characters; GitHub takes 65,536, GitLab a million. Some are left for what is said of a cut."""

_ORDER: Final = re.compile(r"^( *)(?=/[A-Za-z])", re.MULTILINE)
"""GitLab obeys lines such as `/merge` in what an account writes. It looks for them in text that is not Markdown yet, where code
is not always known as code."""

_NOTHING_TO_SEE: Final = "\N{ZERO WIDTH SPACE}"
_CUT: Final = "*The rest is cut: it is longer than a comment may be, and stands whole in the job.*"


def mark(about: str) -> str:
    """What a comment begins with, and shows to nobody."""
    return f"<!-- koordpolicy comment: {about} -->"


def is_marked(body: str, about: str) -> bool:
    """Whether a comment was written for this."""
    return body.lstrip().startswith(mark(about))


def body_of(text: str, about: str) -> str:
    """The whole comment for a text in Markdown."""
    shown = safe(text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
    harmless = _ORDER.sub(lambda indent: indent[0] + _NOTHING_TO_SEE, shown)
    return f"{mark(about)}\n{_cut(harmless)}\n"


def _cut(text: str) -> str:
    """As many whole lines as there is room for; what is open at the cut is closed, so that the remark stands outside."""
    if len(text) <= _LONGEST:
        return text
    shown = text[: text.rfind("\n", 0, _LONGEST) if "\n" in text[:_LONGEST] else _LONGEST]
    lines = shown.split("\n")
    fenced = sum(line.startswith("```") for line in lines) % 2
    folded = sum(line.startswith("<details") for line in lines) - sum(
        line.startswith("</details") for line in lines
    )
    return "\n".join([shown, *["```"] * fenced, *["</details>"] * max(0, folded), "", _CUT])
