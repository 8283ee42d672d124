"""The command line as its parser declares it, for the pages that are made from it. Knows nothing of policies."""
