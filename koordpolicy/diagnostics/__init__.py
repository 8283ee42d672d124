"""What is wrong with a policy, where, and what to do about it.

A diagnostic is a value; how it is drawn is another file (`render/`, one a format). The catalogue
holds one page for each code. Nothing here knows YAML, CEL or policies, and nothing is imported
from the rest of the project.
"""

from koordpolicy.diagnostics.value import (
    Diagnostic,
    Diagnostics,
    Fix,
    Note,
    Position,
    Severity,
    Span,
)

__all__ = ["Diagnostic", "Diagnostics", "Fix", "Note", "Position", "Severity", "Span"]
