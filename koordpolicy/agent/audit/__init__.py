"""What the agent did to its node, and why: events in memory of a fixed size, on disk if wanted, read over HTTP."""
