"""Controllers: what the manager computes for nodes and writes to them."""
