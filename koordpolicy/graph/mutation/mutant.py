"""One mutant as a value, and the file that it makes."""

import json
from dataclasses import dataclass
from hashlib import sha256

from koordpolicy.diagnostics import Span
from koordpolicy.graph.mutation.operators import Operator
from koordpolicy.graph.state import Unit
from koordpolicy.language.documents.document import Path
from koordpolicy.language.documents.whole_values import with_values


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """One change of one document: `before`, which stands at `span`, became `after`.

    `value` is the plain data that stands at `path` of the document instead. `decision` is the one whose value it is, where it
    is no part of an expression.
    """

    operator: Operator
    unit: Unit
    path: Path
    span: Span
    before: str
    after: str
    value: object
    decision: str = ""

    @property
    def noticed_by(self) -> str:
        """The kind of test that notices it, as a phrase."""
        return f"a case that expects `{self.decision}`" if self.decision else self.operator.noticed_by

    @property
    def file(self) -> str:
        """The file that it changes."""
        return self.unit.document.file

    @property
    def text(self) -> str:
        """The whole text of that file with the change in it."""
        positions = self.unit.document.positions
        return with_values(positions.lines.text, [(positions.value(self.path), json.dumps(self.value))])

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that stay while neither the place's path nor the change does."""
        named = (self.unit.id, self.path, self.span.start.line, self.span.start.column, self.value)
        return sha256(json.dumps([self.operator, *named], default=str).encode()).hexdigest()[:8]
