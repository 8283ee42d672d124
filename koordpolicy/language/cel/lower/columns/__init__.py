"""Column programs: expressions lowered to NumPy over a table of nodes.

What belongs here: the generation of code that computes an expression for all rows at once with the
meaning of the row program, errors and their absorption included, and what that code calls. Pieces
without column form are left to row programs, for the rows that need them. What does not belong here:
the storage of columns (`model.table`) and the meaning of operators on single values (`lower.runtime`).
"""

from koordpolicy.language.cel.lower.columns.build import compile_columns
from koordpolicy.language.cel.lower.columns.parts import Fallback
from koordpolicy.language.cel.lower.columns.program import ColumnProgram
from koordpolicy.language.cel.lower.columns.results import ColumnResult
from koordpolicy.language.cel.lower.columns.schema import table_schema

__all__ = ["ColumnProgram", "ColumnResult", "Fallback", "compile_columns", "table_schema"]
