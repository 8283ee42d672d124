"""Git, by its own program: which commit a tree is, and a repository kept in step with a directory.

What belongs here: running the program safely, and what its answers mean. What never does: what the files
in a repository are for.
"""
