"""Files of traces with something wrong in one place: all of it is told with file, line, column, and what is allowed."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.simulator.traces import FORMATS, read_workload
from koordpolicy.simulator.workload import Workload, WorkloadError

TABLES: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("broken_cells.yaml"))
WHOLE = {"nodes": TABLES["openb nodes"]["text"], "pods": TABLES["openb pods"]["text"]}


def read(folder: Path, role: str, text: str) -> Workload:
    files = {one: folder / f"{one}.csv" for one in WHOLE}
    for one, file in files.items():
        file.write_text(text if one == role else WHOLE[one], encoding="utf-8")
    return read_workload(files["nodes"], files["pods"])


@pytest.mark.parametrize(
    ("table", "case"),
    [
        pytest.param(name, case, id=f"{name}{case['says'][:40]}")
        for name in TABLES
        for case in TABLES[name]["cases"]
    ],
)
def test_it_is_told_by_its_place(tmp_path: Path, table: str, case: dict[str, str]) -> None:
    role, text = TABLES[table]["role"], TABLES[table]["text"]
    assert text.count(case["old"]) >= 1
    with pytest.raises(WorkloadError) as caught:
        read(tmp_path, role, text.replace(case["old"], case["new"], 1))
    assert str(caught.value).startswith(f"{tmp_path / role}.csv{case['says']}")


@pytest.mark.parametrize("table", TABLES)
def test_the_same_without_the_change_is_read(tmp_path: Path, table: str) -> None:
    assert read(tmp_path, TABLES[table]["role"], TABLES[table]["text"]).nodes


@pytest.mark.parametrize("role", WHOLE)
def test_of_an_unknown_trace_all_formats_are_told_with_their_columns(tmp_path: Path, role: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        read(tmp_path, role, "a,b\n1,2\n")
    told = str(caught.value).splitlines()[2:]
    assert told == [f"- {one.known()}" for one in FORMATS if one.holds == role]


@pytest.mark.parametrize(
    ("table", "other"), [("openb nodes", "pods"), ("tasks", "nodes"), ("machines", "pods")]
)
def test_a_file_in_the_place_of_the_other_is_told(tmp_path: Path, table: str, other: str) -> None:
    with pytest.raises(WorkloadError, match=f": name it with --{TABLES[table]['role']}$"):
        read(tmp_path, other, TABLES[table]["text"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sn,cpu_milli,memory_mib", '"sn", cpu_milli ,"memory_mib"'),
        ("32000", "32000.0"),
        ("n1,96000", "\nn1,96000"),
        ("n1,", "n1 ,"),
    ],
    ids=["quoted columns", "whole numbers as fractions", "an empty line", "spaces"],
)
def test_what_is_only_written_otherwise_is_the_same(tmp_path: Path, old: str, new: str) -> None:
    plain = read(tmp_path, "nodes", WHOLE["nodes"])
    assert read(tmp_path, "nodes", WHOLE["nodes"].replace(old, new)) == plain


def test_times_that_are_not_said_are_in_no_order(tmp_path: Path) -> None:
    """An instance of the published trace may be there from the beginning and end within it."""
    first, *_ = read(tmp_path, "pods", TABLES["serving instances"]["text"]).arrivals
    assert (first.time, first.duration) == (0, 75 * 10**9)
