"""Strategies that keep something from round to round: what each reads of the node, asks and wants."""
