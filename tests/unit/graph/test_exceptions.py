"""PolicyExceptions: they stand above all rules while they hold, and nowhere before and after."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe import describe_answer
from koordpolicy.graph.exceptions import judge_exceptions, spoken_days
from koordpolicy.graph.testing import run_tests
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import NANOS, parse_timestamp
from koordpolicy.language.facts import Component
from tests.unit.graph.policies_text import codes, compiled, document, graph

DAY = 86_400 * NANOS
BASE = document(
    "CPUSuppress",
    "default",
    """
  precedence: 100
  parameters: {threshold: 65%}
  enabled: true
  target: {cel: node.capacity.cpu * parameters.threshold}
""",
)


def exception(name: str, dates: str, overrides: str, match: str = "nodes: {matchLabels: {pool: web}}") -> str:
    return document(
        "PolicyException",
        name,
        f"""
  owner: web team
  reason: the shop opens
  {dates}
  match: {{{match}}}
  overrides: {{{overrides}}}
""",
    )


def at(text: str) -> Timestamp:
    return parse_timestamp(text)


WEB = {"capacity.cpu": 10_000, "labels": {"pool": "web"}}
OTHER = {"capacity.cpu": 10_000, "labels": {"pool": "other"}}
JUNE = exception("june", "from: 2026-06-01\n  expires: 2026-06-30", "CPUSuppress.parameters.threshold: 50%")


def target(of: RuleGraph, node: dict[str, object], moment: str) -> object:
    return of.at(at(moment)).value("CPUSuppress.target", node=node)


class TestTime:
    revision = graph(BASE, JUNE)

    @pytest.mark.parametrize(
        ("moment", "value"),
        [
            ("2026-05-31T23:59:59.999999999Z", 6_500),
            ("2026-06-01T00:00:00Z", 5_000),
            ("2026-06-30T23:59:59.999999999Z", 5_000),
            ("2026-07-01T00:00:00Z", 6_500),
        ],
    )
    def test_it_holds_from_the_first_moment_of_a_day_to_the_last(self, moment: str, value: int) -> None:
        assert target(self.revision, WEB, moment) == value

    def test_it_holds_only_where_it_matches(self) -> None:
        assert target(self.revision, OTHER, "2026-06-15T00:00:00Z") == 6_500

    def test_a_graph_of_no_moment_has_none(self) -> None:
        assert self.revision.value("CPUSuppress.target", node=WEB) == 6_500
        assert self.revision.in_force == frozenset()
        assert [terms.document for terms in self.revision.exceptions] == ["PolicyException/june"]

    def test_the_graph_knows_when_it_changes(self) -> None:
        begin, end = at("2026-06-01T00:00:00Z"), at("2026-07-01T00:00:00Z")
        assert self.revision.changes_after(Timestamp(begin.ns - 1)) == begin
        assert self.revision.changes_after(begin) == end
        assert self.revision.changes_after(end) is None

    def test_moments_with_the_same_exceptions_share_one_graph(self) -> None:
        one, two = self.revision.at(at("2026-06-02T00:00:00Z")), self.revision.at(at("2026-06-03T00:00:00Z"))
        assert one is two
        assert one.at(at("2026-08-01T00:00:00Z")) is self.revision

    def test_another_graph_has_another_digest(self) -> None:
        within = self.revision.at(at("2026-06-02T00:00:00Z"))
        assert within.digest != self.revision.digest
        assert self.revision.at(at("2027-06-02T00:00:00Z")).digest == self.revision.digest

    def test_the_part_of_a_component_keeps_its_exceptions(self) -> None:
        agent = self.revision.for_component(Component.AGENT)
        assert target(agent, WEB, "2026-06-15T00:00:00Z") == 5_000
        within = self.revision.at(at("2026-06-15T00:00:00Z")).for_component(Component.AGENT)
        assert within.value("CPUSuppress.target", node=WEB) == 5_000
        assert self.revision.for_component(Component.SCHEDULER).exceptions == ()

    @given(st.integers(-400, 400), st.integers(-400, 400), st.integers(-500, 500))
    def test_holding_is_being_between_the_dates(self, first: int, last: int, day: int) -> None:
        start = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
        dates = [
            datetime.fromtimestamp(start + 86_400 * offset, UTC).date().isoformat()
            for offset in (first, last)
        ]
        text = exception("x", f"from: {dates[0]}\n  expires: {dates[1]}", "CPUSuppress.enabled: false")
        if last < first:
            assert "KP705" in codes(BASE, text)
            return
        moment = Timestamp(int(start) * NANOS + day * DAY)
        holds = first <= day <= last
        assert graph(BASE, text).at(moment).value("CPUSuppress.enabled", node=WEB) is not holds


class TestRank:
    def test_an_exception_outranks_any_precedence(self) -> None:
        assert target(graph(BASE, JUNE), WEB, "2026-06-15T00:00:00Z") == 5_000

    def test_of_two_exceptions_the_higher_precedence_wins(self) -> None:
        higher = exception(
            "higher", "expires: 2026-06-20\n  precedence: 1", "CPUSuppress.parameters.threshold: 10%"
        )
        both = graph(BASE, JUNE, higher)
        assert target(both, WEB, "2026-06-20T12:00:00Z") == 1_000
        assert target(both, WEB, "2026-06-21T12:00:00Z") == 5_000

    def test_two_that_never_meet_do_not_conflict(self) -> None:
        july = exception(
            "july", "from: 2026-07-01\n  expires: 2026-07-31", "CPUSuppress.parameters.threshold: 40%"
        )
        both = graph(BASE, JUNE, july)
        assert target(both, WEB, "2026-07-15T00:00:00Z") == 4_000

    def test_two_that_meet_do(self) -> None:
        late = exception(
            "late", "from: 2026-06-30\n  expires: 2026-07-31", "CPUSuppress.parameters.threshold: 40%"
        )
        assert codes(BASE, JUNE, late) == ["KP301"]

    def test_it_does_not_leave_an_ordinary_rule_without_effect(self) -> None:
        pool = document(
            "CPUSuppress",
            "pool",
            "  precedence: 101\n  match: {nodes: {matchLabels: {pool: web}}}\n  parameters: {threshold: 30%}",
        )
        assert target(graph(BASE, pool, JUNE), WEB, "2026-08-15T00:00:00Z") == 3_000


class TestWhatCanBeOverridden:
    def test_a_slot_that_nobody_fills(self) -> None:
        once = graph(BASE, exception("x", "expires: 2026-06-30", 'CPUSuppress.minimum: "500m"'))
        assert once.value("CPUSuppress.minimum", node=WEB) is None
        assert "CPUSuppress.minimum" not in once
        within = once.at(at("2026-06-15T00:00:00Z"))
        assert within.value("CPUSuppress.minimum", node=WEB) == 500
        assert within.value("CPUSuppress.minimum", node=OTHER) is None

    def test_by_an_expression_that_reads_parameters_of_the_target(self) -> None:
        once = graph(
            BASE,
            exception(
                "x",
                "expires: 2026-06-30",
                "CPUSuppress.target: {cel: 'node.capacity.cpu * parameters.threshold / 2'}",
            ),
        )
        assert target(once, WEB, "2026-06-15T00:00:00Z") == 3_250

    def test_decisions_of_several_kinds_at_once(self) -> None:
        overcommit = document("Overcommit", "batch", "  resource: batch\n  cpu: {cel: node.capacity.cpu}")
        once = graph(
            BASE,
            overcommit,
            exception("x", "expires: 2026-06-30", "CPUSuppress.enabled: false, Overcommit/batch.cpu: 1"),
        ).at(at("2026-06-15T00:00:00Z"))
        assert once.value("CPUSuppress.enabled", node=WEB) is False
        assert once.value("Overcommit/batch.cpu", node=WEB) == 1_000
        assert once.value("Overcommit/batch.cpu", node=OTHER) == 10_000

    def test_a_class_cannot(self) -> None:
        band = document("PriorityBand", "low", "  range: {from: 1, to: 9}")
        assert "KP704" in codes(
            BASE, band, exception("x", "expires: 2026-06-30", "PriorityBand/low.default: 5")
        )

    def test_order_of_files_does_not_matter(self) -> None:
        assert graph(BASE, JUNE).digest == graph(JUNE, BASE).digest


class TestProvenance:
    within = graph(BASE, JUNE).at(at("2026-06-15T00:00:00Z"))

    def test_an_answer_names_exception_owner_and_end(self) -> None:
        answer = self.within.ask("CPUSuppress.target", node=WEB)
        terms = [ref.terms for ref in answer.provenance.rules if ref.terms]
        assert [(one.document, one.owner, one.until) for one in terms] == [
            ("PolicyException/june", "web team", "2026-06-30")
        ]
        assert answer.provenance.digest == self.within.digest

    def test_so_does_its_explanation(self) -> None:
        text = describe_answer(self.within, "CPUSuppress.parameters.threshold", {"node": WEB})
        for word in ("PolicyException/june", "web team", "2026-06-30", "the shop opens"):
            assert word in text


class TestTests:
    def results(self, now: str) -> list[bool]:
        given = f"{{node: {{capacity: {{cpu: 10}}, labels: {{pool: web}}}}{now}}}"
        test = document(
            "PolicyTest",
            "t",
            f"  cases:\n    - name: one\n      given: {given}\n      expect: {{CPUSuppress.target: 5}}",
        )
        done = compiled(BASE, JUNE, test)
        assert done.graph is not None
        return [case.passed for case in run_tests(done.graph, done.units).cases]

    def test_a_case_within_the_time_sees_the_exception(self) -> None:
        assert self.results(", now: 2026-06-15T00:00:00Z") == [True]

    def test_a_case_beyond_it_does_not(self) -> None:
        assert self.results(", now: 2026-07-15T00:00:00Z") == [False]

    def test_a_case_of_no_time_is_about_the_ordinary_policies(self) -> None:
        assert self.results("") == [False]


class TestJudging:
    units = compiled(BASE, JUNE).units

    @pytest.mark.parametrize(
        ("moment", "found"),
        [
            ("2026-05-31T00:00:00Z", []),
            ("2026-06-01T00:00:00Z", []),
            ("2026-06-16T23:00:00Z", []),
            ("2026-06-17T01:00:00Z", ["KP702"]),
            ("2026-06-30T23:00:00Z", ["KP702"]),
            ("2026-07-01T00:00:00Z", ["KP701"]),
            ("2030-07-01T00:00:00Z", ["KP701"]),
        ],
    )
    def test_two_weeks_before_its_end_it_is_warned_of(self, moment: str, found: list[str]) -> None:
        assert [one.code for one in judge_exceptions(self.units, at(moment))] == found

    def test_exceptions_of_packs_are_their_authors_business(self) -> None:
        done = compiled("", pack=BASE + "---\n" + JUNE)
        assert not list(judge_exceptions(done.units, at("2030-07-01T00:00:00Z")))

    @pytest.mark.parametrize(
        ("hours", "text"),
        [
            (0, "less than an hour"),
            (1, "1 hour"),
            (47, "47 hours"),
            (48, "2 days"),
            (24 * 1500, "1,500 days"),
        ],
    )
    def test_time_is_spoken_in_days(self, hours: int, text: str) -> None:
        assert spoken_days(hours * 3600 * NANOS) == text
