"""The canonical layout of policy files, for `koordpolicy fmt`.

Lines are moved, never rewritten: two spaces a level, list dashes one level below their key, one
space after `:` and `-`, tidy flow collections on one line, at most one empty line in a row, and the
order apiVersion, kind, metadata, spec. Comments, quoting, the order within `spec` and every
character of an expression stay as the author wrote them.

The formatter doubts itself: a document whose layout it cannot move without changing its data or
its comments, or that would look different after a second pass, stays as it is.
"""

from koordpolicy.language.format.files import format_text

__all__ = ["format_text"]
