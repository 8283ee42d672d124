"""What the agent tells the cluster of its node: NodeMetric, NodeResourceTopology, and which policies it runs."""
