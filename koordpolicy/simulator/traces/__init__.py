"""Readers of traces: files of published formats become workloads. One file a format."""

from koordpolicy.simulator.traces.openb import read_nodes, read_pods

__all__ = ["read_nodes", "read_pods"]
