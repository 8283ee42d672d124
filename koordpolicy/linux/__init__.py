"""The kernel's side: what files below /proc and /sys say, and the only place that writes them."""
