"""What decisions may cost: the estimates of their rules, put together.

Parameters matter: a list that a policy sets to two elements is not walked sixty-four times. Putting their
values in place takes time, so an estimate that knows no values comes first, and counts a list that a
parameter holds as long as any other list.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.graph.decide import Expressions, parameter_key
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.cost import Estimate, Loop, estimate

_FREE = Estimate(0, 0)


@dataclass(frozen=True, slots=True)
class RuleCost:
    """Units that one rule may cost at most: its match, its value, and the loops in either, dearest first."""

    test: int
    value: int
    loops: tuple[Loop, ...]

    @property
    def total(self) -> int:
        return self.test + self.value


def bound_of(rule: Rule) -> RuleCost:
    """What a rule may cost whatever its parameters are, without what computing them costs."""
    return _cost(rule.match.test, rule.value)


def _cost(test: ir.Node | None, value: ir.Node) -> RuleCost:
    tested = _FREE if test is None else estimate(test)
    valued = estimate(value)
    loops = sorted((*tested.loops, *valued.loops), key=lambda loop: (-loop.total, loop.start))
    return RuleCost(tested.maximum, valued.maximum, tuple(loops))


class Costs:
    """Costs of the decisions of one graph. Parameters form no cycles, so the sums end."""

    def __init__(
        self,
        decisions: Mapping[DecisionKey, Decision],
        expressions: Expressions,
        bounds: Mapping[Rule, RuleCost] | None = None,
    ) -> None:
        self._decisions = decisions
        self._expressions = expressions
        self._bounds: dict[Rule, RuleCost] = dict(bounds or {})
        self._whole: dict[DecisionKey, int] = {}

    def rule(self, rule: Rule) -> RuleCost:
        """The cost of one rule, parameters as they are set."""
        test = rule.match.test
        resolved = None if test is None else self._expressions.resolved(test, rule.key)
        return _cost(resolved, self._expressions.resolved(rule.value, rule.key))

    def decision(self, decision: Decision) -> int:
        """Units of one evaluation at most, parameters as they are set."""
        return estimate(self._expressions.value(decision)).maximum

    def bound(self, key: DecisionKey) -> int:
        """A quick estimate, far above the cost as a rule.

        Every match is tested, the dearest value is the one that decides, and every parameter is computed
        wherever it is read.
        """
        known = self._whole.get(key)
        if known is None:
            rules = self._decisions[key].rules
            tests = parameters = 0
            values = []
            for rule in rules:
                cost = self._bound(rule)
                tests += cost.test
                values.append(cost.value)
                if rule.parameters:
                    parameters += self._parameters(rule)
            known = self._whole[key] = tests + max(values, default=1) + parameters + len(rules)
        return known

    def _bound(self, rule: Rule) -> RuleCost:
        known = self._bounds.get(rule)
        if known is None:
            known = self._bounds[rule] = bound_of(rule)
        return known

    def _parameters(self, rule: Rule) -> int:
        """What computing the parameters of a rule may cost, were each of them read in every step."""
        read = (parameter_key(rule.key, name) for name in rule.parameters)
        dear = sum(cost for key in read if key in self._decisions and (cost := self.bound(key)) > 1)
        return dear * max(1, self._bound(rule).total)
