"""Moving pods away from where they are: the arithmetic of a descheduler, as Koordinator's has it.

Nothing here knows a cluster, a clock or a default of policy: thresholds, weights, limits and times arrive as arguments. It is for a
component that asks policy which nodes are too full and which pods may go, and for `tests/vectors`, which compares it with Koordinator.
Times are in seconds, amounts in the unit of their resource.
"""
