"""What policy has the agent hold back of a pod, and whether it may let it go: told from what the cluster shows of its node."""
