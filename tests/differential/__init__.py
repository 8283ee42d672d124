"""Random expressions in every implementation at hand: where they disagree, one of them is wrong.

`python -m tests.differential [--count N] [--seed N]` runs them; what a run once found stands in `found/` as
cases that the test suite repeats.
"""
