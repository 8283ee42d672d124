"""Plain values of the field: quantities, pods, nodes, metrics, and the names they travel under.

What belongs here: frozen values, readers from Kubernetes JSON objects (dicts, as the API sends
them) to those values, and the flat fact records built from them. What does not: input and output,
clocks, opinions (classes, bands, thresholds are policy), and any knowledge of the policy language
above. Amounts are integers everywhere: cpu in millicores, every other resource in whole units.
"""
