"""What every implementation of the `Cluster` protocol does. One suite, run against each of `clusters.CLUSTERS`."""
