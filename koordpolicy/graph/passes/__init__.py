"""The compiler's passes, one a file. Each takes the `State`, fills in its part, and goes on past
errors with a stand-in where it safely can, so that one run reports everything.
"""
