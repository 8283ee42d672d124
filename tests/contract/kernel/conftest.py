from collections.abc import Iterator

import pytest

from koordpolicy.linux.files.kernel_file import CgroupVersion
from tests.contract.kernel.kernels import Kernel, fake, host

KERNELS = ("fake v1", "fake v2", "host v1", "host v2")


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """A root of each implementation, with a group of the test's own."""
    where, version = request.param.split()
    if where == "fake":
        yield fake(CgroupVersion(version))
        return
    with host(CgroupVersion(version)) as found:
        if found is None:
            pytest.skip(f"cgroups {version} with cpu, cpuset and memory cannot be written on this machine")
        yield found
