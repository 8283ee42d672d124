"""What documents set and nothing in a cluster acts on yet, in a line below the findings."""

import re
import textwrap
from collections.abc import Sequence
from typing import Final

from koordpolicy.diagnostics import Diagnostic
from koordpolicy.diagnostics.escaping import safe

_NAMED: Final = re.compile(r"`[^`]+`")


def awaited_line(notes: Sequence[Diagnostic], width: int) -> str:
    """How many fields notes (KP312) speak of, or the name of the only one, wrapped; empty without notes."""
    if not notes:
        return ""
    named = _NAMED.match(notes[0].message)
    only = named.group() if named and len(notes) == 1 else f"{len(notes):,} fields" if named else "canaries"
    said = f"note[KP312]: nothing in a cluster acts yet on {safe(only)}; `-v` says more"
    return textwrap.fill(said, width, subsequent_indent=" " * 13, break_on_hyphens=False)
