"""Mutants: what a policy would say after one small slip of its author, each as an edit of one file.

    units --mutants_of--> mutants --text--> another revision

Of one place there are as many as differ in the case that would notice them; `thorough` makes others, too, which say
little of tests and much of a comparison of revisions.

Pure: nothing is compiled or run. Some mutants are no policies (of another type, say), and some mean the same as the
original: who compiles them finds out.
"""

from koordpolicy.graph.mutation.documents import mutants_of
from koordpolicy.graph.mutation.mutant import Mutant
from koordpolicy.graph.mutation.operators import Operator

__all__ = ["Mutant", "Operator", "mutants_of"]
