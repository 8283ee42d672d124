"""The descheduler: which pods are to leave their nodes, as the kind Descheduling says, and letting them go.

A round is *snapshot → rules → moves → evictions*: what the cluster is like (`snapshot.py`), what policy says of it (`rules.py`), what follows
(`low_node_load.py`, `by_rules.py`, put together by `round.py`), and only then is anything written (`evictor.py`): a PodMigrationJob, which `migration/` carries out, or an
eviction. `process.py` is the process.
"""
