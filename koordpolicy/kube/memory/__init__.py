"""A whole cluster inside the process: the API server's rules, without network, disk or wall clock.

`Store` is the synchronous face, for simulations that own their clock; `MemoryCluster` puts the `Cluster`
protocol in front of one. Inside, `state.py` remembers (as etcd does), `server.py` answers requests, and
`garbage.py` and `budgets.py` do what those controllers do that clients cannot do without. There are no
kubelets, no schedulers and no workload controllers: those are its users. One thread at a time.
"""

from koordpolicy.kube.memory.cluster import MemoryCluster
from koordpolicy.kube.memory.store import Store
from koordpolicy.kube.memory.watch import WatchQueue

__all__ = ["MemoryCluster", "Store", "WatchQueue"]
