"""Where groups are: the hierarchies that are mounted, the kubelet's groups by class, pod and container.

Paths of groups are relative to a hierarchy (`kubepods/burstable/pod1`); a `Hierarchy` makes paths of files of
them. What never belongs here: what files in groups mean.
"""
