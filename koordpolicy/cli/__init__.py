"""The command line: one file a command, one table that names them.

A command reads its arguments, calls what does the work, and shows the outcome on a `Terminal`. Nothing
here decides anything about policies.
"""
