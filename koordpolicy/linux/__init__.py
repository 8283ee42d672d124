"""The kernel's side: what files below /proc and /sys say, and the only place that writes them.

`root.py` is the protocol of a kernel's files; behind it the machine's own (`host_root.py`) and a model of one
(`fake/`). `files/` is the table of kernel files, `cgroups/` where groups are, `writes/` the one door for
writes, `readings/` one reader a source. What belongs here knows kernels; what never does: policies,
Kubernetes' objects, when to do something.
"""
