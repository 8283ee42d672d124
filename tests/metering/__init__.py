"""Metered work over real work: random and hostile expressions with large values, what each was charged, how long it
took and how much memory it held.

`python -m tests.metering [--count 20000] [--seed N]` prints how the nanoseconds of a unit are distributed, and the worst.
"""
