"""The manager: webhooks for pods, and the controllers that publish overcommitted resources.

Every part tells the same sentence: facts → ask → plan → apply. The two in the middle are plain
functions of a rule graph and fact records; only the controllers' `run` and what
serves webhooks touch the cluster. No class, band, threshold or formula stands here: they are asked for.
"""
