"""What the agent shows as metrics: read from what it knows whenever somebody asks, so that nothing is kept for nobody."""
