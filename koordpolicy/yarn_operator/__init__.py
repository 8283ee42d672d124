"""The YARN operator: what the NodeManagers of a Hadoop YARN may use of nodes' batch resources, as the kind YARNNode says.

A round is *NodeManagers → plans → writes*: what the ResourceManager knows (`koordpolicy/yarn`), what policy says of each node and what follows (`plans.py`), and
only then is anything written: what is claimed to the node, what is offered to the ResourceManager (`rounds.py`). `process.py` is the process.
"""
