"""Random clusters and pods. Words are few, so that they meet."""

from tests.differential_scheduling.drawing.clusters import draw

__all__ = ["draw"]
