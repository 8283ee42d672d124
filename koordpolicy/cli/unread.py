"""Policies in files that are not read because of their names, such as `P.YAML` or `p.json`."""

import os
import textwrap
from collections.abc import Mapping
from itertools import islice
from typing import Final

from koordpolicy.diagnostics.escaping import one_line
from koordpolicy.language.foreign import speaks_of_policies

_MOST_NAMED: Final = 3
_BEGINNING = 65_536
_MOST_LOOKED_AT = 200
"""Bytes that are read of a file, and how many files, to tell whether it was meant as a policy."""


def unread(nearly: Mapping[str, str], width: int) -> str:
    """A sentence on policies in files that are not read because of their names, wrapped; empty where there are none.

    `nearly` are real paths by the path that is shown.
    """
    meant = [
        file for file, real in islice(nearly.items(), _MOST_LOOKED_AT) if speaks_of_policies(_beginning(real))
    ]
    if not meant:
        return ""
    count = len(meant)
    shown = ", ".join(one_line(file) for file in meant[:_MOST_NAMED])
    more = f" and {count - _MOST_NAMED:,} more" if count > _MOST_NAMED else ""
    said = (
        f"{count:,} file{' with policies is' if count == 1 else 's with policies are'} left alone: {shown}{more}; "
        "names of files that are read end in `.yaml` or `.yml`"
    )
    return textwrap.fill(said, width, subsequent_indent="  ", break_on_hyphens=False)


def _beginning(real: str) -> str:
    """The first characters of a file; none where it cannot be read."""
    try:
        opened = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(opened, _BEGINNING).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(opened)
