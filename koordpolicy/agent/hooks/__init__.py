"""What the agent changes in single pods and containers where they are started."""
