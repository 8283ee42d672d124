"""What fills the tables of measurements: one round after the other, of what the kernel says now."""
