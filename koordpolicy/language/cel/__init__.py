"""The Common Expression Language: parse, check types and units, lower to Python.

    source --parse--> ast --check--> ir --lower--> a Python function

`ast` is what was written, `ir` what was meant: every node typed, every name and overload resolved,
macros kept as comprehensions. Row and column programs are both lowered from `ir`.
"""
