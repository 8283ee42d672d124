from koordpolicy.diagnostics import Diagnostic, Diagnostics, Position, Severity, Span


def test_findings_come_by_file_line_column_and_code() -> None:
    found = Diagnostics()
    found.add("KP107", Span.at("b.yaml", 1, 1), "third")
    found.add("KP104", Span.at("a.yaml", 10, 2), "second")
    found.add("KP106", Span.at("a.yaml", 9, 30), "first")
    found.add("KP101", Span.at("a.yaml", 10, 2), "before second")
    assert [finding.message for finding in found] == ["first", "before second", "second", "third"]


def test_an_equal_finding_is_kept_once() -> None:
    found, other = Diagnostics(), Diagnostics()
    for collector in (found, found, other):
        collector.add("KP104", Span.at("a.yaml", 1, 1), "unknown key `x`")
    found.extend(other)
    assert len(found) == 1


def test_a_warning_is_no_error() -> None:
    found = Diagnostics()
    found.add("KP308", Span.at("a.yaml"), "unused", severity=Severity.WARNING)
    assert not found.has_errors
    found.add("KP104", Span.at("a.yaml"), "unknown")
    assert found.has_errors


def test_a_span_on_one_line_ends_after_its_last_character() -> None:
    assert Span.at("a.yaml", 3, 5, 4) == Span("a.yaml", Position(3, 5), Position(3, 9))


def test_a_finding_is_a_value() -> None:
    one = Diagnostic("KP104", "unknown key `x`", Span.at("a.yaml", 1, 1))
    assert one == Diagnostic("KP104", "unknown key `x`", Span.at("a.yaml", 1, 1))
    assert len({one, Diagnostic("KP104", "unknown key `x`", Span.at("a.yaml", 1, 1))}) == 1
