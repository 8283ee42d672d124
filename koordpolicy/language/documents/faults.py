"""What can be wrong with a text before it is data. Reading most documents takes no more of the YAML library than this."""

MAX_DEPTH = 60
"""How deep mappings and lists of a document may nest."""

MAX_NODES = 100_000
"""How many values a document may have once every alias is expanded."""


class SyntaxFault(Exception):
    """The text is not YAML. Offsets are relative to the text given."""

    def __init__(
        self, problem: str, offset: int, context: str = "", context_offset: int | None = None
    ) -> None:
        super().__init__(problem)
        self.problem, self.offset = problem, offset
        self.context, self.context_offset = context, context_offset


class TooLarge(Exception):
    """A document exceeds a limit. `offset` counts from the start of the file."""

    def __init__(self, offset: int, message: str, help: str) -> None:
        super().__init__(message)
        self.offset, self.message, self.help = offset, message, help
