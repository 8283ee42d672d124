"""The agent of a node: keeps best-effort work out of the way, and sizes its containers.

Every part tells the same sentence: facts → ask → plan → apply. A plan is data: which CPUs, which quota,
which limits. Writing it to the kernel is another package's work.
"""
