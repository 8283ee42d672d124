"""Decisions, answers and declarations in words, for a terminal of a given width.

`decision` says what a decision is and which rules it has, `answer` how it came out on given facts,
`declaration` what a kind, a fact or a function of the language is. All of them are plain
functions to text; `data` says the same to programs.
"""

from koordpolicy.graph.describe.answer import describe_answer
from koordpolicy.graph.describe.data import decision_data
from koordpolicy.graph.describe.decision import describe, describe_subject
from koordpolicy.graph.describe.declaration import describe_declaration

__all__ = ["decision_data", "describe", "describe_answer", "describe_declaration", "describe_subject"]
