"""A kubelet's answers, good and bad, over HTTP."""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from koordpolicy.kube.errors import Forbidden, KubeError, Unreachable
from koordpolicy.kube.kubelet import KubeletAccess, connect_kubelet
from tests.parts.http_answers import answering
from tests.unit.runtime.http.certificates import certificate

ANSWERS = {
    "good": (200, '{"items": [{"metadata": {"name": "a"}}]}'),
    "null": (200, '{"items": null}'),
    "text": (200, "no JSON"),
    "list": (200, "[]"),
    "odd": (200, '{"items": [1]}'),
    "deep": (200, '{"items":' + "[" * 200_000),
    "latin": (200, '{"items": ["\udcff"]}'),
    "deep refusal": (500, '{"details":{"causes":' + "[" * 200_000),
    "refused": (403, "Forbidden (user=x, verb=get)"),
}


def by_token(path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Answers by the bearer token."""
    code, body = ANSWERS[headers["Authorization"].removeprefix("Bearer ")]
    if path == "/configz":
        body = '{"kubeletconfig": {"cpuManagerPolicy": "static"}}'
    return code, body.encode(errors="surrogateescape")


@pytest.fixture
def url() -> Iterator[str]:
    with answering(by_token) as found:
        yield found


def test_answers(url: str, tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []

    async def story() -> None:
        token = tmp_path / "token"
        access = KubeletAccess(url, token)
        async with connect_kubelet(access, "test", lambda *told: heard.append(told[:2])) as kubelet:
            with pytest.raises(Unreachable, match="token"):
                await kubelet.pods(10)
            token.write_text("good\n")
            assert await kubelet.pods(10) == ({"metadata": {"name": "a"}},)
            assert await kubelet.configuration(10) == {"cpuManagerPolicy": "static"}
            for answer, error in (
                ("null", Unreachable),
                ("text", Unreachable),
                ("list", Unreachable),
                ("odd", Unreachable),
                ("deep", Unreachable),
                ("latin", Unreachable),
                ("deep refusal", KubeError),
                ("refused", Forbidden),
            ):
                token.write_text(answer)  # renewed on disk, and read at each request
                with pytest.raises(error):
                    await kubelet.pods(10)

    asyncio.run(story())
    assert heard[:3] == [("/pods", 0), ("/pods", 200), ("/configz", 200)]
    assert heard[-1] == ("/pods", 403)


def test_nobody_answers_or_nobody_is_trusted(url: str, tmp_path: Path) -> None:
    async def ask(access: KubeletAccess) -> KubeError:
        async with connect_kubelet(access, "test") as kubelet:
            with pytest.raises(KubeError) as raised:
                await kubelet.pods(5)
        return raised.value

    gone = asyncio.run(ask(KubeletAccess("https://127.0.0.1:1", insecure=True)))
    assert "does not answer" in gone.message
    own = certificate(7)
    for name, content in (("pem", own.pem), ("key", own.key), ("other", certificate(8).pem)):
        (tmp_path / name).write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pem", tmp_path / "key")
    with answering(by_token, context) as self_signed:
        refused = asyncio.run(ask(KubeletAccess(self_signed, ca_file=tmp_path / "other", server_name="n1")))
    assert f"signed by `{tmp_path}/other` for `n1`" in refused.message
    assert "`--kubelet-insecure-tls` takes any" in refused.message
    missing = asyncio.run(ask(KubeletAccess(url.replace("http:", "https:"), ca_file=tmp_path / "ca.crt")))
    assert isinstance(missing, Unreachable)
