"""The agent of a node: keeps best-effort work out of the way, and sizes its containers.

Every part tells the same sentence: facts → ask → plan → apply. A plan is data (`plan.py`): writes to kernel files by
name, and pods that have to go. `strategies/` make plans, a file each; `strategies/arbiter.py` makes one of all of them;
`apply.py` hands its writes to the one door of `linux/`.
"""
