"""The real components on a virtual clock, over the in-memory cluster and a model of what nodes do.

What belongs here: time, traces, the model of usage, and the wiring of components that in production
are processes of their own. What never does: a decision about pods or nodes. Those come from the rule
graph through the same code that runs in a cluster.
"""
