"""Policies changed in one place at a time, to see whether a comparison of revisions finds each change."""
