"""The manual's page of metrics, from their table."""

from koordpolicy.language.manual.markdown import code, table
from koordpolicy.runtime.metrics.koordlet import NOT_SHOWN
from koordpolicy.runtime.metrics.table import METRICS

_INTRODUCTION = """# Metrics

Every process serves them under `/metrics`, in the format of Prometheus. A metric that has nothing to tell is absent.
The metrics of the process itself (`process_cpu_seconds_total`, `process_resident_memory_bytes`, ...) come on top. The agent shows
gauges that dashboards made for koordlet know, such as `koordlet_pod_psi`, as `koordpolicy_pod_psi` too: a scrape may drop either.
Not there yet, with the runtime hooks that they time: NOT_SHOWN.
"""


def metrics_page() -> str:
    """The page, ending with a line break."""
    introduction = _INTRODUCTION.replace("NOT_SHOWN", ", ".join(map(code, sorted(NOT_SHOWN))))
    rows = [
        (code(metric.name), str(metric.kind), ", ".join(code(label) for label in metric.labels), metric.help)
        for metric in METRICS
    ]
    return f"{introduction}\n{table(('metric', 'kind', 'labels', 'meaning'), rows)}"
