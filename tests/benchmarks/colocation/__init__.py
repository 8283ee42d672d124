"""A service that answers in milliseconds, and best-effort work beside it, in real control groups of this kernel."""

from tests.benchmarks.colocation.experiment import run

__all__ = ["run"]
