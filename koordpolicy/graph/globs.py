"""Patterns of paths: `*` and `?` within a directory's name, `**` over any number of directories."""

import re
from functools import cache


def matches(pattern: str, path: str) -> bool:
    """Whether a relative path, with `/` between names, is one that the pattern means."""
    return _compiled(pattern).fullmatch(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(pattern[at], re.escape(pattern[at])))
            at += 1
    return re.compile("".join(parts).removeprefix("\\./"))
