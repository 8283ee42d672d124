"""Which test needs which permission of `deploy/rbac`: found by what API servers were asked, shown by taking each away.

`needs.yaml` has a line for each verb on each resource of each role of a process that a test asked for.
"""
