"""What a process says of its policies in the cluster: PolicyRevisions, conditions, Events, who is there."""
