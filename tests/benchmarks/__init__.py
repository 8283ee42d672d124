"""Benchmarks: how long things take, measured beside their peers in the same run.

They compare and never fail for being slow. `python -m tests.benchmarks [NAME...]` runs them.
"""
