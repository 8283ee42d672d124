"""Documents as texts of YAML."""

from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML

_WIDTH: Final = 100


def yaml_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """Documents as YAML, a separator between two; mappings keep their order."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.width = _WIDTH
    writer.representer.ignore_aliases = lambda _data: True
    stream = StringIO()
    writer.dump_all(list(documents), stream)
    return stream.getvalue().removeprefix("---\n")
