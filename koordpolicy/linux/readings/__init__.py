"""What the kernel tells: one reader a source, each a function of a `KernelRoot`.

A reader gives a value or raises `KernelFileError` with the file's name: `NoSuchFile` where it is not there (any
more), which a caller expects of groups, processes and devices that end at any time, `Malformed` where it says
something else than it is known to. What never belongs here: rates, averages, decisions.
"""
