"""What `koordpolicy status` finds and shows."""
