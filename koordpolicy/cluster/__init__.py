"""The cluster as components know it: nodes in a table, pods on them, their load, and all that is found by index.

What belongs here: what many components need to know and none decides on. `cache` keeps the table and the pods on
nodes, `state` what is there beside rows (labels of pods, topology, ports, images, volumes, workloads).
"""
