"""The metrics of jobs that dashboards made for koord-scheduler know: its names and labels.

Of a gang that displaced others, its own name is no label here: one series a job would be one for ever. The number of quotas is what
people say it is, so that labels may grow with it.
"""

from typing import Final

from koordpolicy.runtime.metrics.metric import Metric, MetricKind

_ROUND: Final = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 25.0, 30.0, 45.0, 60.0, 120.0)
_DOUBLING: Final = tuple(0.001 * 2**at for at in range(20))

KOORD_SCHEDULER: Final = (
    Metric(
        "scheduler_waiting_gang_group_number",
        MetricKind.GAUGE,
        "Gangs, or gangs that are placed together, of which pods wait on their nodes for others.",
    ),
    Metric(
        "scheduler_gang_schedule_cycle_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time of an attempt to place a gang, by how it ended and by how many pods it has (0, 1-100, 101-200, ... 1000+).",
        ("reason", "job_size"),
        _ROUND,
    ),
    Metric(
        "scheduler_job_preemption_duration_seconds",
        MetricKind.HISTOGRAM,
        "Time of a search for pods that go for a gang, by result (success, failure).",
        ("result",),
        _DOUBLING,
    ),
    Metric(
        "scheduler_elastic_quota_status",
        MetricKind.GAUGE,
        "What a quota may have, has and asks for, by field; CPU in millicores.",
        ("name", "resource", "tree", "is_parent", "parent", "field"),
    ),
    Metric(
        "scheduler_reservation_status_phase",
        MetricKind.GAUGE,
        "1 for the phase of a Reservation, 0 for the others.",
        ("name", "phase"),
    ),
    Metric(
        "scheduler_reservation_resource",
        MetricKind.GAUGE,
        "What a Reservation keeps (`allocatable`), what its owners have of that (`allocated`), and that by what it keeps (`utilization`).",
        ("type", "name", "resource", "unit"),
    ),
    Metric(
        "scheduler_secondary_device_not_well_planned",
        MetricKind.GAUGE,
        "1 for each node whose Device object is labelled as having secondary devices that are not well planned.",
        ("node",),
    ),
)
