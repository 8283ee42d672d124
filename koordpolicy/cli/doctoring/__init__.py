"""What `koordpolicy doctor` looks at: one file a part, each gives `ClusterCheck` values and changes nothing."""
