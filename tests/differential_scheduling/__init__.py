"""Random small clusters and pods, evaluation by our scheduler, by a plain oracle and by the real kube-scheduler."""
