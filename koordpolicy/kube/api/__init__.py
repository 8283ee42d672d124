"""The real API server behind the `Cluster` protocol: raw JSON over HTTP.

A pod's account is two files (`service_account.py`); of kubeconfigs `plain_kubeconfig.py` reads those that say all there is to
know, and the official client the others (`kubeconfig.py`), which alone import it. Everything else is ours, because it stands in the way of thousands of objects a second: `transport.py` sends and repeats what may be
repeated, `codec.py` decodes no more than is kept, `watch.py` cuts a stream into events, `statuses.py`
turns refusals into the errors of `kube/errors.py`. Chance is an argument, and time is the event loop's.
"""

from koordpolicy.kube.api.access import ConfigurationError
from koordpolicy.kube.api.cluster import ApiCluster, connect
from koordpolicy.kube.api.connection import Connection
from koordpolicy.kube.api.transport import ClientLimits, Observer

__all__ = ["ApiCluster", "ClientLimits", "ConfigurationError", "Connection", "Observer", "connect"]
