"""A key never appears in journal, log, error or repr."""

import asyncio
import logging
import traceback
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from fakes.models import FakeModels, ModelFault
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import ModelError, Request, UserMessage
from foretell.models.provider import ProviderClient
from foretell.models.router import ModelRouter

FAULTS = [
    ModelFault(kind="status", status=401, message="Incorrect API key provided: {key}"),
    ModelFault(kind="status", status=400, message="header Authorization: Bearer {key} is malformed"),
    ModelFault(kind="status", status=400, message="{key:.25}**** at /?key={quoted} is {coded}"),
    ModelFault(kind="status", status=404, message="no such model for {key}"),
    ModelFault(kind="status", status=429, message="slow down, {key}"),
    ModelFault(kind="status", status=500, message="{key} broke us"),
    ModelFault(kind="cut"),
    ModelFault(kind="hang_up"),
    ModelFault(kind="malformed"),
]
NAMES = ["openai:m", "openrouter:vendor/m", "anthropic:claude-sonnet-4-6", "google:gemini-3-flash-preview"]


def with_key(message: str, key: str) -> str:
    """Fill in a key, or a part or encoding of it."""
    coded = b64encode(f"Bearer {key}".encode()).decode()
    return message.format(key=key, quoted=quote(key, safe=""), coded=coded)


@pytest.mark.parametrize("name", NAMES)
def test_key_never_leaks(
    name: str,
    tmp_path: Path,
    canary: str,
    keys: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    loopback: Callable[[str, str], ProviderClient],
):
    caplog.set_level(logging.DEBUG)
    outputs: list[str] = []

    async def main() -> None:
        journal = Journal(tmp_path / "j.db")
        async with FakeModels() as fake:
            client = loopback(name, fake.url + ("/v1" if name.startswith("open") else ""))
            limits = {name.partition(":")[0]: ModelLimits(attempts=1)}
            async with ModelRouter(keys, journal=journal, limits=limits, wire=lambda _: client) as exchange:
                outputs.append(repr(exchange) + repr(client))
                for fault in FAULTS:
                    fake.fail(ModelFault(kind=fault.kind, status=fault.status, message=with_key(fault.message, canary)))
                    with pytest.raises(ModelError) as caught:
                        await exchange.complete(Request(model=name, messages=(UserMessage(text=f"{fault}"),)))
                    outputs.extend(traceback.format_exception(caught.value))
                await exchange.complete(Request(model=name, messages=(UserMessage(text="well"),)))
        journal.close()

    asyncio.run(main())
    assert canary not in "".join(outputs)
    assert canary[:14] not in "".join(outputs)  # A part of the key.
    assert b64encode(f"Bearer {canary}".encode()).decode()[12:24] not in "".join(outputs)
    assert canary not in caplog.text
    for file in tmp_path.iterdir():
        assert canary.encode() not in file.read_bytes()
