"""Decisions in the words of an API server: typed expressions as CEL over Kubernetes' own objects.

What comes out means the same as what went in, for every object that an API server admits; where that is not certain, nothing
comes out, but the reason. Nothing here knows admission policies or writes objects.
"""

from koordpolicy.graph.native.objects import NativeObjects, Variables
from koordpolicy.graph.native.reasons import NotNative
from koordpolicy.graph.native.writer import written

__all__ = ["NativeObjects", "NotNative", "Variables", "written"]
