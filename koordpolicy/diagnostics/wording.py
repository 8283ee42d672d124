"""An exception in words: what logs, conditions and answers say of it, never nothing."""

_MOST_CAUSES = 3
"""Members of an exception group that are named."""


def unanswered(error: BaseException, within: float) -> str:
    """Why something asked within so many seconds was not answered: what the error says, or that there was none."""
    return f"no answer within {within:g} s" if isinstance(error, TimeoutError) else worded(error)


def worded(error: BaseException) -> str:
    """What the exception says; its type where that alone says nothing, as `TimeoutError()` does.

    A group is what its first members say.
    """
    if isinstance(error, BaseExceptionGroup):
        causes = [worded(one) for one in error.exceptions[:_MOST_CAUSES]]
        more = len(error.exceptions) - len(causes)
        return "; ".join(causes) + (f" (and {more} more)" if more else "")
    text = str(error).strip()
    if isinstance(error, LookupError) and text:
        return f"{type(error).__name__}: {text}"  # a bare key or index tells nothing
    return text or type(error).__name__
