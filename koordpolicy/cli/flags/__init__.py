"""What commands take, one module a command, named as it; the others declare what several commands share.

These modules are imported for help, completion and parsing alone, so they import nothing that works: constants come
from modules that are as light. `tests/unit/cli/test_imports.py` holds them to it.
"""
