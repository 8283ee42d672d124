"""How much work advice may be: what takes long here is `Work`, which yields `PAUSE` (of `plugins/base`) at the latest after each evaluation of nodes."""


class TooMuch(Exception):
    """As many evaluations as permitted have been made."""


class Evaluations:
    """How often nodes may be evaluated; `spent` is how often they were."""

    __slots__ = ("most", "spent")

    def __init__(self, most: int) -> None:
        self.most = most
        self.spent = 0

    def spend(self) -> None:
        """Before each evaluation. Raises TooMuch."""
        if self.spent >= self.most:
            raise TooMuch
        self.spent += 1
