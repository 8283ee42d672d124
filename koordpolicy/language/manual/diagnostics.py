"""The page of diagnostic codes."""

from koordpolicy.diagnostics.catalogue import GROUPS
from koordpolicy.language.manual.markdown import table

_INTRODUCTION = """# Diagnostics

`koordpolicy explain CODE` prints the same page. Codes keep their meaning for ever.

"""


def diagnostics_page() -> str:
    """The page, ending with a line break."""
    rows = [(code.code, code.severity.value, code.title) for codes in GROUPS.values() for code in codes]
    parts = [_INTRODUCTION + table(("code", "usually", "title"), rows)]
    for title, codes in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [code.markdown(level=3) + "\n" for code in codes]
    return "\n".join(parts)
