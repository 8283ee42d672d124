"""The policies that decide: where they come from, how they are compiled aside, and when they take over."""
