"""Facts of a rollout: what is known of a new revision while the old one still decides."""

from koordpolicy.language.cel.types import DOUBLE, DURATION, INT, PERCENT, STRING, map_of
from koordpolicy.language.facts.table import EVERYWHERE, Fact, Record

ROLLOUT = Record(
    "rollout",
    "How a new revision does on its way: counts are of the present step, over all processes that report.",
    (
        Fact("step", STRING, "Name of the present step.", EVERYWHERE),
        Fact("elapsed", DURATION, "Time in the present step, without pauses.", EVERYWHERE),
        Fact("compared", INT, "Decisions on which both revisions were asked.", EVERYWHERE),
        Fact(
            "disagreements", INT, "Those of them on which the revisions gave different answers.", EVERYWHERE
        ),
        Fact(
            "disagreement",
            PERCENT,
            "Share of them on which the revisions gave different answers; absent before the first.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "disagreementByKind",
            map_of(STRING, PERCENT),
            "The same by kind of decision, such as `CPUSuppress`, for kinds of which some were compared.",
            EVERYWHERE,
        ),
        Fact(
            "failures",
            INT,
            "Decisions that the new revision failed on while the old one did not.",
            EVERYWHERE,
        ),
        Fact(
            "latency.active",
            DURATION,
            "Mean time of one decision by the old revision, on the inputs compared; absent before the first.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "latency.candidate",
            DURATION,
            "Mean time of one decision by the new revision, on the same inputs.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "instances.total",
            INT,
            "Processes that have seen the new revision, agents of nodes included.",
            EVERYWHERE,
        ),
        Fact(
            "instances.rejected", INT, "Processes that cannot take it, agents of nodes included.", EVERYWHERE
        ),
        Fact(
            "instances.canary",
            INT,
            "Processes that decide by it for a part; of agents each for its node.",
            EVERYWHERE,
        ),
        Fact(
            "agents.due",
            INT,
            "Agents of nodes that go ahead by the present step or one before it; absent until they have been counted in this step.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "agents.running",
            INT,
            "Agents that decide by the new revision.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "agents.behind",
            INT,
            "Agents that are due, report, and do not decide by it: they have not got it yet.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "agents.rejected",
            INT,
            "Agents that cannot take it, due or not.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "agents.silent",
            INT,
            "Agents that are due and have not reported for as long as `MetricCollection.summary.silentAfter`.",
            EVERYWHERE,
            may_be_missing=True,
        ),
        Fact(
            "metrics",
            map_of(STRING, DOUBLE),
            "The judging process's own metrics by name, summed over labels: of counters and histograms the increase "
            "since the step began, of gauges the value.",
            EVERYWHERE,
        ),
    ),
)
