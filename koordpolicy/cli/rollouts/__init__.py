"""What `koordpolicy rollout` finds and shows."""
