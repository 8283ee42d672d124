"""Stories of pods, where there is nothing to tell."""

import pytest

from koordpolicy.console.stories import story_of
from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.kube.snapshot import Snapshot


class Nobody:
    """Asked for a migration alone, which may be all that is left of a pod."""

    def migration(self, picture: Snapshot, name: str) -> None:
        return None

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


@pytest.mark.parametrize("name", ["default/gone", "default/a/b"])
def test_a_pod_that_nobody_has_heard_of_has_no_story(name: str) -> None:
    with pytest.raises(CannotAnswer, match=f"there is no pod `{name}`"):
        story_of(Nobody(), Snapshot(0, {}), name, [], None)  # type: ignore[arg-type]
