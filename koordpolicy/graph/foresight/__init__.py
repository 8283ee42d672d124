"""What `check` says of expressions that can fail: where, why, and the edit that mends it.

What belongs here: which rules are looked at and under which conditions (`asked`), wording (`words`), edits (`mending`).
What does not belong here: what can fail, which is `language/cel/failing`.
"""

from koordpolicy.graph.foresight.findings import foresight

__all__ = ["foresight"]
