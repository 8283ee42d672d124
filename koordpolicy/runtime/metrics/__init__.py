"""Metrics: what there is in one table, and the numbers of a process by the names in it."""

from koordpolicy.runtime.metrics.registry import CONTENT_TYPE, Metrics, Sizes

__all__ = ["CONTENT_TYPE", "Metrics", "Sizes"]
