"""koordpolicy: Kubernetes co-location as policies in Git.

The package README tells a policy's journey; each package's docstring says what belongs in it.
"""

__version__ = "0.1.0"
