"""Choices between maps and lists that only the node decides: all columns, and as the row program says."""

import pytest

from tests.unit.language.cel.columns.support import assert_same, columns, table_of

ROWS = (
    {"name": "a", "labels": {"pool": "x"}, "resources.load": {"cpu": 7, "memory": 1}},
    {"name": "b", "labels": {}, "resources.load": {"cpu": 7}},
    {"name": "c", "labels": {"pool": "y"}, "resources.load": {"cpu": 4, "gpu": 1}},
    {"name": "d", "resources.load": {"cpu": 4}},
    {"name": "e", "labels": {"pool": "x"}},
)
POD = {"resources.request": {"cpu": 1}}

POOL = 'node.labels[?"pool"].orValue("") == "x"'
OTHER = 'node.labels[?"pool"].orValue("") == "y"'
LIMITS = f'({POOL} ? {{"cpu": 5}} : {{"cpu": 8, "memory": 0}})'
NESTED = f'({POOL} ? {{"cpu": 5}} : {OTHER} ? {{"gpu": 0}} : {{"cpu": 8, "memory": 0}})'
NAMES = f'({POOL} ? ["cpu"] : ["cpu", "memory"])'

TEXTS = f"""
{LIMITS}["cpu"]
{LIMITS}[?"memory"].orValue(3)
{NESTED}[?"gpu"].hasValue()
{NESTED}.cpu
size({LIMITS}) + size({NESTED})
"memory" in {LIMITS}
{NAMES}.exists(r, node.resources.load[?r].orValue(amount(0)) > amount(5))
{NAMES}.map(r, node.resources.load[?r].orValue(amount(0))).sum()
size(({NAMES} + {LIMITS}.map(k, k)).distinct())
({NAMES} + {LIMITS}.map(k, k)).distinct().filter(r, number(node.resources.load[?r].orValue(amount(0))) > {LIMITS}[?r].orValue(9)).size()
{NAMES}.filter(r, number(node.resources.load[?r].orValue(amount(0))) > {LIMITS}[?r].orValue(9))[0]
""".strip().splitlines()


@pytest.mark.parametrize("text", TEXTS)
def test_columns_agree_with_rows(text: str) -> None:
    assert columns(text).fallback == ()
    assert_same(text, table_of(ROWS), POD)


def test_very_many_choices_are_left_to_row_programs() -> None:
    text = '["z"]'
    for number in range(40):
        text = f'(node.name == "n{number}" ? ["x{number}"] : {text})'
    program = columns(f"size({text})")
    assert program.fallback != ()
    assert_same(f"size({text})", table_of(ROWS), POD)
