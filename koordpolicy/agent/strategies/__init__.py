"""What the agent does about the node as a whole, each strategy in a file of its own."""
