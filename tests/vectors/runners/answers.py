"""What one step of a profile says, by its name."""

from koordpolicy.scheduler.evaluation import Evaluation, Filtered, Scored


def filtered(evaluation: Evaluation, name: str) -> Filtered:
    """The answers of a filter."""
    return next(one for one in evaluation.filters if one.step.name == name)


def scored(evaluation: Evaluation, name: str) -> Scored:
    """The answers of a score."""
    return next(one for one in evaluation.scores if one.step.name == name)
