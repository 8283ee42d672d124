"""A slow, obvious scheduler over the JSON of objects, written from what Kubernetes documents.

It shares no code with the project, knows no tables, no columns and no memory, and looks at everything anew
for each question. What the scheduler says about small clusters must be what it says.
"""

from tests.oracle.cluster import Cluster
from tests.oracle.oracle import Refusal, feasible, refusals

__all__ = ["Cluster", "Refusal", "feasible", "refusals"]
