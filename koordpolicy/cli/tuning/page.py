"""The manual's page of the report that `tune` asks, from the table of its numbers."""

from koordpolicy.cli.tuning.measures import MEASURED, NEEDS, OFFERED, ReportField
from koordpolicy.language.kinds import type_name
from koordpolicy.language.manual.markdown import code, table

_INTRODUCTION = """# Report of a simulation

`koordpolicy tune` grows or shrinks a number that is made of these in CEL (`--maximise`, `--minimise`), while conditions hold
(`--subject-to`). Names are those of `koordpolicy simulate -o json`. All numbers are doubles: write `2.0`, not `2`, beside `*` and `+`.
Shares lie between 0 and 1.

    --maximise 'report.batch.coreHours - 5.0 * report.agents.evicted' --subject-to 'report.services.violationShare < 0.01'

What counts by names has no entry for what did not happen: `report.agents.evictions[?"BEMemoryEvict"].orValue(0.0)`. What may be
missing is guarded by `has(...)`.

"""


def report_page() -> str:
    """The page, ending with a line break."""
    needs = {part: f"{remedy[0].upper()}{remedy[1:]}." for part, remedy in NEEDS.items()}
    rows = [_row(one, f"report.{one.path}") for one in MEASURED]
    below = [_row(one, f'report.overcommit["kubernetes.io/batch-cpu"].{one.path}') for one in OFFERED]
    conditions = table(
        ("part", "where it is missing"), ((code(f"report.{part}"), said) for part, said in needs.items())
    )
    head = ("name", "type", "unit", "may be missing", "meaning")
    return f"{_INTRODUCTION}{table(head, [*rows, *below])}\n{conditions}"


def _row(one: ReportField, name: str) -> tuple[str, ...]:
    return code(name), type_name(one.type), one.unit, "yes" if one.may_be_missing else "", one.meaning
