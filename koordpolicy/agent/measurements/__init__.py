"""What was measured lately, in memory of a fixed size: rings of numbers, a table for each level."""
