"""The one door for writes: every change of a kernel file goes through it.

A `Write` says which file of which target gets which value, who writes and why. What a write means, and whether
it should be made, is not decided here; whether the file can hold it is.
"""
