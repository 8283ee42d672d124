"""The pages of the site: links of the sources, what counts as one, and, where mkdocs is installed, what becomes of hostile text."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import REPOSITORY

SITE = REPOSITORY / "deploy" / "site"


def loaded(name: str) -> ModuleType:
    """A module beside the site's configuration, which is no package."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


pages = loaded("pages")


def test_every_link_between_pages_leads_somewhere() -> None:
    assert pages.broken() == []


def test_a_page_that_the_navigation_does_not_name_comes_last_in_its_section() -> None:
    examples = ["examples/README.md", {"One": "examples/1/README.md"}]
    sections: list[dict[str, Any]] = [{"Guide": []}, {"Reference": []}, {"Operations": []}, {"Inside": []}]
    named: list[dict[str, Any]] = [{"Start": "README.md"}, {"Examples": examples}, *sections]
    known = [
        "README.md",
        "examples/1/README.md",
        "examples/2/README.md",
        "schemas/guide/new.md",
        "tests/README.md",
    ]
    made = pages.navigation(named, [Path(one) for one in known])
    assert made == [
        named[0],
        {"Examples": [*examples, "examples/2/README.md"]},
        {"Guide": ["schemas/guide/new.md"]},
        {"Reference": []},
        {"Operations": []},
        {"Inside": ["tests/README.md"]},
    ]
    assert sections == [{"Guide": []}, {"Reference": []}, {"Operations": []}, {"Inside": []}]


CASES = {
    "[a](schemas/there.md)": "",
    "[a](nowhere.md)": "leads nowhere",
    "[a](schemas/there.md#one-two)": "",
    "[a](schemas/there.md#three)": "no such heading",
    "[a](#here)": "",
    "[a](#there)": "no such heading",
    "`[a](nowhere.md)`": "",
    "```\n[a](nowhere.md)\n```": "",
    "[a](https://example.org/nowhere.md)": "",
    "[a](../../outside.md)": "out of the repository",
    "![a](nowhere.svg)": "leads nowhere",
    "[a](folder)": "",
}


@pytest.mark.parametrize("text", CASES)
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, text: str) -> None:
    root = tmp_path / "repository"
    (root / "folder").mkdir(parents=True)
    (root / "README.md").write_text(f"# Here\n\n{text}\n", "utf-8")
    (root / "CHANGELOG.md").write_text("# Changes\n", "utf-8")
    (root / "schemas").mkdir()
    (root / "schemas/there.md").write_text("# One `two`\n", "utf-8")
    found = pages.broken(root)
    assert len(found) == bool(CASES[text])
    assert all(CASES[text] in one and one.startswith("README.md:3: ") for one in found)


def test_anchors_are_those_of_hosts_of_repositories() -> None:
    text = (
        "# A `b.c` & d\n## Same\n## Same\n### [Link](x.md), *it*\n```\n# no heading\n```\n## Rust-like_name\n"
    )
    assert pages.anchors(text) == {"a-bc--d", "same", "same-1", "link-it", "rust-like_name"}


HOSTILE = (
    "# <script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n"
    "| name |\n|---|\n| <b onclick=alert(1)>bold</b> `<i>` |\n\n<div>\n\n<!-- hidden -->\n</div>\n"
)


def test_hostile_text_is_text() -> None:
    markdown = pytest.importorskip("markdown", reason="mkdocs is of the extra `site`")
    made = markdown.markdown(HOSTILE, extensions=["tables", "toc", loaded("hooks").NoHtml()])
    for opened in ("<script", "<img", "<b ", "<div", "<!--", "<i>"):
        assert opened not in made
        assert opened.replace("<", "&lt;").replace(">", "&gt;") in made


def test_the_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is of the extra `site`")
    command = [sys.executable, str(SITE / "build"), "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    kinds = (tmp_path / "site/schemas/manual/kinds.html").read_text("utf-8")
    assert 'id="cpusuppress"' in kinds
    assert "CPUSuppress" in (tmp_path / "site/search/search_index.js").read_text("utf-8")
    fetched = [
        page.name
        for page in (tmp_path / "site").rglob("*.html")
        if 'src="http' in (text := page.read_text("utf-8")) or 'rel="stylesheet" href="http' in text
    ]
    assert fetched == []
