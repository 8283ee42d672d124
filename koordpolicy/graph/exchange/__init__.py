"""Koordinator's configuration and policies, each as the other: read, written, and rendered for those who read nothing else."""
