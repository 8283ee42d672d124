"""A table of all nodes: a column for each fact, kept up to date row by row."""

from koordpolicy.model.table.columns import Column
from koordpolicy.model.table.lists import Segments
from koordpolicy.model.table.node_table import NodeTable

__all__ = ["Column", "NodeTable", "Segments"]
