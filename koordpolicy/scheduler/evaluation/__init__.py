"""What a profile says of all nodes about a pod: evaluated, remembered, kept up to date; see README.md beside this."""

from koordpolicy.scheduler.evaluation.answers import Filtered, Scored
from koordpolicy.scheduler.evaluation.cache import EvaluationCache
from koordpolicy.scheduler.evaluation.evaluate import evaluate
from koordpolicy.scheduler.evaluation.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.ranking import Ranking
from koordpolicy.scheduler.evaluation.refusals import FirstRefusals

__all__ = ["Evaluation", "EvaluationCache", "Filtered", "FirstRefusals", "Ranking", "Scored", "evaluate"]
