"""The table of kernel files: what each is called, holds and may hold, and who may write it.

A file is a row of `table.KERNEL_FILES`; how its text is read and written is a form of `forms.py`. What never
belongs here: paths of groups, reading, writing.
"""
