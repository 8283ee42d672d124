"""A model of a kernel's cgroups behind the same protocol as the machine's own, on a clock that its user moves.

`FakeRoot` is the files; `machine.py` what runs there; `cpu.py` and `memory.py` who gets what. The files take and
refuse what the kernel takes and refuses: the contract tests run on both. What the model leaves out is said where
it does.
"""
