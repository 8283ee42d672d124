"""From what was written to what is meant: names resolved, types and units checked."""

from koordpolicy.language.cel.checker.context import Problem
from koordpolicy.language.cel.checker.expression import check, check_as, watched
from koordpolicy.language.cel.checker.names import FactGroup, NameSpace

__all__ = ["FactGroup", "NameSpace", "Problem", "check", "check_as", "watched"]
