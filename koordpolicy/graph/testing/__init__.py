"""PolicyTests: inputs and expected decisions, carried out on a compiled graph.

    units --read--> cases --run--> results, findings, coverage

Pure: no files, no clock. What a test says about facts becomes records (`facts`, `neutral`), what it says
about parameters lies over the graph (`overlay`), and its expectations are compared with the answers
(`compare`). `findings` turns what went wrong into diagnostics, `coverage` counts what was reached, `update`
writes actual values into the test's own text.
"""

from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.testing.coverage import Coverage
from koordpolicy.graph.testing.facts import Said, laid_over, read_facts
from koordpolicy.graph.testing.gate import with_tests
from koordpolicy.graph.testing.results import CaseResult, Outcome, Results
from koordpolicy.graph.testing.run import run_tests
from koordpolicy.graph.testing.update import updated

__all__ = [
    "CaseResult",
    "Coverage",
    "Outcome",
    "Results",
    "Said",
    "laid_over",
    "read_facts",
    "records_of",
    "run_tests",
    "updated",
    "with_tests",
]
