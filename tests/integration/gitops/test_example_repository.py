"""`examples/11-gitops-repository` in a cluster: applied by Flux's controller as it is, by Argo CD's engine as kustomize renders it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.deploy.lua import health
from tests.integration.gitops.argo import argo
from tests.integration.gitops.flux import flux
from tests.integration.gitops.site import POLICIES, SERVER, Site, conditions, message, site
from tests.integration.gitops.test_flux import has_failed, is_ready
from tests.parts.fixtures import need

EXAMPLE = REPOSITORY / "examples" / "11-gitops-repository" / "repository"
TUNING = "overlays/staging/tuning.yaml"
SLIP = "cpuReclaimed: 70%"


def files(share: str = "cpuReclaim: 55%") -> dict[str, str]:
    """The repository's files by their paths, with staging's share."""
    found = {
        path.relative_to(EXAMPLE).as_posix(): path.read_text("utf-8")
        for path in EXAMPLE.rglob("*")
        if path.is_file()
    }
    assert "cpuReclaim: 55%" in found[TUNING]
    found[TUNING] = found[TUNING].replace("cpuReclaim: 55%", share)
    return found


@pytest.fixture(scope="module")
def here(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster of this file's own, from which its first bundle is gone: the repository brings one."""
    need(pytestconfig, *SERVER)
    with site(tmp_path_factory.mktemp("example")) as made:
        made.send("DELETE", f"{POLICIES}/policybundles/cluster")
        yield made


def test_flux_applies_an_overlay_and_tells_of_a_slip(here: Site, part: Callable[[str], Path]) -> None:
    with flux(here, part("kustomize-controller")) as controller:
        first = controller.publish("shop", files())
        controller.reconcile("shop", "./overlays/staging")
        here.eventually(lambda: is_ready(controller, "shop", first), "the Kustomization is ready")
        here.eventually(lambda: here.offered() == 55_000, "staging decides")
        slip = controller.publish("shop", files(SLIP))
        here.eventually(lambda: has_failed(controller, "shop", slip), "the Kustomization has failed")
        assert "cpuReclaimed" in message(here.policy(), "Stalled")
        assert here.offered() == 55_000, "the last good revision decides"
        mended = controller.publish("shop", files("cpuReclaim: 70%"))
        here.eventually(lambda: is_ready(controller, "shop", mended), "the fix heals it")
        here.eventually(lambda: here.offered() == 70_000, "the fix decides")


def test_argo_applies_what_is_rendered_and_shows_a_slip_as_degraded(
    here: Site, part: Callable[[str], Path], tmp_path: Path
) -> None:
    lua = part("lua")
    environment = {**os.environ, "PATH": os.pathsep.join((str(part("kubectl").parent), os.environ["PATH"]))}

    def rendered(share: str) -> dict[str, str]:
        repository, made = tmp_path / "repository", tmp_path / "rendered"
        for name, text in files(share).items():
            repository.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            repository.joinpath(name).write_text(text, "utf-8")
        command = ["bash", str(EXAMPLE / "ci/render"), str(made), str(repository)]
        subprocess.run(command, env=environment, check=True, timeout=60)
        return {"policies.yaml": made.joinpath("staging/policies.yaml").read_text("utf-8")}

    with argo(here, part("gitops-agent")) as clone:
        clone.commit(rendered("cpuReclaim: 60%"))
        here.eventually(lambda: here.offered() == 60_000, "staging decides")
        here.eventually(lambda: conditions(here.policy()) == {"Ready": "True"}, "it is ready")
        assert health(lua, here.policy())[0] == "Healthy"
        clone.commit(rendered(SLIP))
        here.eventually(lambda: health(lua, here.policy())[0] == "Degraded", "the slip is degraded")
        assert "cpuReclaimed" in health(lua, here.policy())[1]
        assert here.offered() == 60_000, "the last good revision decides"
        clone.commit(rendered("cpuReclaim: 65%"))
        here.eventually(lambda: health(lua, here.policy())[0] == "Healthy", "the fix heals it")
        here.eventually(lambda: here.offered() == 65_000, "the fix decides")
