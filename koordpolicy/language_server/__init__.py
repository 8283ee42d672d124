"""Policies in an editor: the Language Server Protocol over what `check`, `fmt` and `explain` know.

What belongs here: what stands under a cursor, what could stand there, where a name is defined and used, which edits mend
or rename. What never does: meaning of its own. Findings, types, layout and fixes are those of the command line.

`server` is the door to the protocol's library; the other modules speak of paths, offsets and texts.
"""
