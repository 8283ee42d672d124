"""What the Kubernetes documentation says of a pod and a node, node by node and pod by pod, over raw JSON.

Slow and obvious on purpose: it shares no code with the scheduler that it is compared with.
"""

from tests.differential_scheduling.oracle.cluster import Cluster
from tests.differential_scheduling.oracle.evaluate import judgement

__all__ = ["Cluster", "judgement"]
