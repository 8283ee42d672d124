"""A process between kubelet and container runtime: it asks hook servers around the calls that start, change and stop containers."""
