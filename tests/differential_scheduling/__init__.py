"""Random small clusters and pods, judged by our scheduler, by a plain oracle and by the real kube-scheduler."""
