"""Pods on their way to other nodes: PodMigrationJobs, as the kind Migration says.

What stands in the objects is all there is: a migration is its PodMigrationJob and, where room is kept first, a Reservation of the same
life. Whoever leads goes on where the last one ended (`controller.py`), step by step as `algorithms/descheduling/migration.py` says, and
writes what it is about to do before it does it.
"""
