"""The page of one diagnostic code."""

import textwrap
from dataclasses import dataclass
from typing import Self

from koordpolicy.diagnostics.value import Severity


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means, for the author who met it.

    `title` is one line. `explanation` says what is wrong, `why` what would follow from it, `advice` what to do.
    `example` is a file that is reported, `remedy` the same file mended; both are YAML, and each is one file of a
    bundle that extends the built-in pack. `severity` is the usual one: a check may be milder where it says so.
    """

    code: str
    title: str
    severity: Severity
    explanation: str
    why: str
    example: str
    advice: str
    remedy: str

    @classmethod
    def written(
        cls,
        code: str,
        title: str,
        *,
        explanation: str,
        why: str,
        example: str,
        advice: str,
        remedy: str,
        severity: Severity = Severity.ERROR,
    ) -> Self:
        """A page from texts as they are laid out in source files: indents and line breaks of prose go."""
        return cls(
            code,
            title,
            severity,
            _prose(explanation),
            _prose(why),
            textwrap.dedent(example).strip("\n"),
            _prose(advice),
            textwrap.dedent(remedy).strip("\n"),
        )

    def markdown(self, level: int = 1, width: int = 0) -> str:
        """The page as Markdown, its title a heading of `level`, its prose wrapped to `width` columns (0: not)."""
        head, below = "#" * level, "#" * (level + 1)
        return "\n\n".join(
            (
                f"{head} {self.code}: {self.title}",
                f"*{self.severity}*",
                _wrapped(self.explanation, width),
                f"{below} Why it matters",
                _wrapped(self.why, width),
                f"{below} Example",
                f"```yaml\n{self.example}\n```",
                f"{below} What to do",
                _wrapped(self.advice, width),
                f"```yaml\n{self.remedy}\n```",
            )
        )


def _prose(text: str) -> str:
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _wrapped(prose: str, width: int) -> str:
    if not width:
        return prose
    return "\n\n".join(
        textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False)
        for paragraph in prose.split("\n\n")
    )
