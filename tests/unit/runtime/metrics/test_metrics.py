"""Metrics by the names of the table, and nothing else."""

import re
from pathlib import Path

import pytest

from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.metrics.metric import Metric, MetricKind
from koordpolicy.runtime.metrics.table import METRICS
from koordpolicy.runtime.requests import RequestCounts


def test_the_process_says_what_it_is() -> None:
    metrics = Metrics("manager")
    text = metrics.text().decode()
    assert re.search(
        r'^koordpolicy_build_info\{component="manager",version="[^"]+"\} 1\.0$', text, re.MULTILINE
    )
    assert "process_cpu_seconds_total" in text


def test_numbers_are_kept_by_labels() -> None:
    metrics = Metrics("test")
    metrics.add("koordpolicy_reload_skipped_total")
    metrics.add("koordpolicy_reload_skipped_total", 2)
    assert metrics.value("koordpolicy_reload_skipped_total") == 3
    metrics.only("koordpolicy_source_trouble", 1, reason="A")
    metrics.only("koordpolicy_source_trouble", 1, reason="B")
    assert metrics.value("koordpolicy_source_trouble", reason="A") is None
    assert metrics.value("koordpolicy_source_trouble", reason="B") == 1
    for number in (1, 0):  # without labels likewise
        metrics.set("koordpolicy_yarn_reachable", number)
        assert metrics.value("koordpolicy_yarn_reachable") == number
        metrics.clear("koordpolicy_yarn_reachable")
        assert metrics.value("koordpolicy_yarn_reachable") is None
    metrics.observe("koordpolicy_reload_duration_seconds", 0.3)
    assert metrics.value("koordpolicy_reload_duration_seconds") == 1


def test_the_order_of_labels_makes_no_other_number() -> None:
    metrics = Metrics("test")
    for _ in range(2):
        metrics.add("koordpolicy_kube_requests_total", verb="get", resource="pods", code="200")
        metrics.add("koordpolicy_kube_requests_total", code="200", resource="pods", verb="get")
        metrics.add("koordpolicy_kube_requests_total", verb="get", resource="pods", code="404")
        metrics.observe("koordpolicy_kube_request_duration_seconds", 0.1, verb="get")
        metrics.observe("koordpolicy_kube_request_duration_seconds", 0.1, verb="list")
    asked = {"verb": "get", "resource": "pods"}
    assert metrics.value("koordpolicy_kube_requests_total", **asked, code="200") == 4
    assert metrics.value("koordpolicy_kube_requests_total", **asked, code="404") == 2
    assert metrics.value("koordpolicy_kube_request_duration_seconds", verb="get") == 2


def test_requests_are_counted_as_a_histogram_and_a_counter_would() -> None:
    seconds = (0.0, 0.001, 0.0011, 0.2, 9.9, 10.0, 11.0)
    usual, metrics = Metrics("test"), Metrics("test")
    counts = RequestCounts(metrics)
    for number, one in enumerate(seconds):
        verb, code = ("get", 200) if number % 2 else ("bind", 409)
        counts.add(verb, "pods", code, one)
        usual.add("koordpolicy_kube_requests_total", verb=verb, resource="pods", code=str(code))
        usual.observe("koordpolicy_kube_request_duration_seconds", one, verb=verb)

    def lines(text: bytes) -> list[str]:
        found = re.findall(r"^(?:# [A-Z]+ )?koordpolicy_kube_.*$", text.decode(), re.MULTILINE)
        return sorted(line for line in found if "_created" not in line)

    assert lines(metrics.text()) == lines(usual.text())
    assert metrics.value("koordpolicy_kube_request_duration_seconds", verb="bind") == 4
    assert metrics.numbers()["koordpolicy_kube_requests_total"] == len(seconds)


def test_mistakes_of_ours_raise() -> None:
    metrics = Metrics("test")
    with pytest.raises(KeyError):
        metrics.add("koordpolicy_nothing_total")
    with pytest.raises(TypeError):
        metrics.set("koordpolicy_reload_skipped_total", 1)
    with pytest.raises(ValueError, match="label"):
        metrics.add("koordpolicy_reload_total", result="activated")
    DecisionCounts(metrics)
    with pytest.raises(ValueError, match="elsewhere"):
        metrics.add("koordpolicy_decisions_total", decision="x", outcome="answered")
    with pytest.raises(ValueError, match="counted already"):
        DecisionCounts(metrics)
    with pytest.raises(TypeError):
        metrics.measure_elsewhere("koordpolicy_kube_requests_total", RequestCounts(Metrics("test")))


def test_decisions_are_counted_by_name_and_for_the_last_revisions() -> None:
    metrics = Metrics("test")
    counts = DecisionCounts(metrics)
    for number in range(20):
        counts.add("CPUSuppress.target", f"r{number}", 2)
    counts.add("CPUSuppress.target", "r19", failed=True)
    assert (
        metrics.value("koordpolicy_decisions_total", decision="CPUSuppress.target", outcome="answered") == 40
    )
    assert metrics.value("koordpolicy_decisions_total", decision="CPUSuppress.target", outcome="failed") == 1
    assert metrics.value("koordpolicy_revision_decisions_total", revision="r19") == 3
    assert metrics.value("koordpolicy_revision_decisions_total", revision="r0") is None


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    # Those of koordlet and koord-scheduler are for dashboards that know them.
    assert re.fullmatch(r"(koordpolicy|koordlet|scheduler)_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    assert (metric.kind is MetricKind.HISTOGRAM) == bool(metric.buckets)
    assert metric.help.endswith(".")


def test_every_metric_of_the_table_is_used_somewhere(repository: Path) -> None:
    texts = "".join(path.read_text("utf-8") for path in (repository / "koordpolicy").rglob("*.py"))
    assert [metric.name for metric in METRICS if texts.count(f'"{metric.name}"') < 2] == []
