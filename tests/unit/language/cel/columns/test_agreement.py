"""Whatever the expression and the facts: a column program gives what the row program gives."""

import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.language.cel.columns.generators import NODES, PODS, expressions
from tests.unit.language.cel.columns.support import assert_same, small, table_of

EXAMPLES = int(os.environ.get("KOORDPOLICY_COLUMN_EXAMPLES", "300"))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), st.lists(NODES, max_size=6), PODS)
def test_columns_agree_with_rows(text: str, nodes: list[dict[str, Any]], pod: dict[str, Any]) -> None:
    assert_same(text, table_of(nodes), pod)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), st.lists(NODES, max_size=6), PODS)
def test_columns_of_smaller_numbers_agree(
    text: str, nodes: list[dict[str, Any]], pod: dict[str, Any]
) -> None:
    assert_same(text, table_of(small(nodes)), small(pod))
