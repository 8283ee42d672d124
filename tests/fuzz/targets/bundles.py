"""Bundles of policies, as a commit brings them: compiled, tested, evaluated as a trial does."""

from collections.abc import Sequence
from functools import lru_cache
from random import Random

from koordpolicy.graph import Compiler
from koordpolicy.runtime.policies.packs import find_pack
from koordpolicy.runtime.policies.revisions import Reason
from koordpolicy.runtime.trial.attempt import attempt
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.verdict import TrialRequest
from tests.fuzz.mutations import mutate_text
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.yaml import policy_texts

_APART = b"\n# --- file\n"
_ROOT = b"apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\nmetadata: {name: fuzzed}\nspec: {extends: []}\n"
_COMPILERS: list[Compiler] = []


@lru_cache(maxsize=1)
def _seeds() -> Sequence[bytes]:
    return tuple(_ROOT + _APART + text for text in policy_texts() if b"kind: PolicyBundle" not in text)


def _mutate(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """A root, and one to three files of which at least one is changed."""
    files = [mutate_text(chance, seeds).split(_APART)[-1]]
    files += [chance.choice(seeds).split(_APART)[-1] for _ in range(chance.randrange(3))]
    return _APART.join((_ROOT, *files))


def _run(data: bytes) -> None:
    if not _COMPILERS:
        _COMPILERS.append(Compiler(find_pack))
    texts = data.decode("utf-8", "replace").split(_APART.decode())
    names = ("koordpolicy.yaml", *(f"{at}.yaml" for at in range(1, len(texts))))
    request = TrialRequest(dict(zip(names, texts, strict=True)))
    verdict, _ = attempt(_COMPILERS[0], request, TrialLimits(), None, lambda _: None)
    if verdict.reason in (Reason.INTERNAL_ERROR, Reason.LIMIT_EXCEEDED):
        _COMPILERS.clear()
        raise Defect(f"{verdict.message}\n{verdict.trace}")


BUNDLES = Target("bundles", "bundles of policies", _seeds, _mutate, _run)
