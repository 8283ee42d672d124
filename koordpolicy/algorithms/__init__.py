"""Pure algorithms that carry out decisions: requests, fit, scores, load, CPU picking, translation.

Nothing here has an opinion: thresholds, weights, orders, classes and bands arrive as arguments, from
the rule graph. No files, no cluster, no clock; same input, same output. Where many nodes are asked
at once there are two forms, one node in plain Python and all nodes in NumPy, with equal answers.
"""
