"""One object that fails where many are gone through: the others must not wait for it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LOG: Final = logging.getLogger(__name__)


@contextmanager
def passed_over(kind: str, *name: str) -> Iterator[None]:
    """What fails inside, over one object by another revision, concerns that object alone."""
    try:
        yield
    except Exception:
        LOG.exception("%s %s is passed over: internal error, please report", kind, "/".join(name))
