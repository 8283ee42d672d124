"""What the site does otherwise than mkdocs: nothing that stands in a page is HTML, and every page has its place."""

import sys
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pages import navigation, pages


class NoHtml(Extension):
    """Angle brackets are text: names, messages and outputs that pages quote may have any."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # the library's name
        """Take away what lets HTML through; what is left of it is escaped."""
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.deregister("html")


def on_config(config: Any) -> Any:
    """Add the extension for each page, and the pages that the navigation does not name."""
    config.nav = navigation(config.nav, pages())
    config.markdown_extensions.append(NoHtml())
    return config
