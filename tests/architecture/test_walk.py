"""The walks of the architecture page lead through functions that are there."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path("koordpolicy/README.md").read_text("utf-8")
STEPS = re.findall(r"^\| \d+ \|.*\| `([a-zA-Z_.]+)` \|$", PAGE, re.MULTILINE)


def test_a_pod_is_followed_in_ten_steps() -> None:
    assert len(STEPS) == 10


@pytest.mark.parametrize("name", STEPS)
def test_each_step_is_a_function_that_can_be_opened(name: str) -> None:
    module = next(
        part
        for at in range(len(name), 0, -1)
        if _is_module(part := name[:at]) and name[at : at + 1] in (".", "")
    )
    found: object = importlib.import_module(module)
    for attribute in name[len(module) + 1 :].split("."):
        found = getattr(found, attribute)
    assert callable(found)


def _is_module(name: str) -> bool:
    return Path(*name.split(".")).with_suffix(".py").is_file()


@pytest.mark.parametrize("file", re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|md))`", PAGE))
def test_every_file_that_the_page_names_is_there(file: str) -> None:
    places = (Path("koordpolicy"), Path(), *Path("koordpolicy").iterdir())
    assert any((place / file).is_file() for place in places)
