"""The facts a rule may name, each declared once: type, unit, meaning, and who can supply it.

Everything that knows facts reads these declarations: the checker's names and types, the fact
reference of the manual, the check that a rule asks only for what its decision point has, and the
inputs a `PolicyTest` may give. To add a fact, add a line to the record's file; to add a record, add a
file and a line to `FACTS`.

At run time a record is one flat mapping from dotted path to value. A fact marked as one that may be
missing is simply absent then; it is never zero by default.
"""

from koordpolicy.language.facts.records import FACTS
from koordpolicy.language.facts.roots import ROOTS, Root
from koordpolicy.language.facts.table import Component, Fact, FactTable, Group, Record
from koordpolicy.language.facts.times import TIMES

__all__ = ["FACTS", "ROOTS", "TIMES", "Component", "Fact", "FactTable", "Group", "Record", "Root"]
