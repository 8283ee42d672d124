"""What `koordpolicy recommend` finds, shows, and writes."""
