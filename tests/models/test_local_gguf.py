"""A real local model, if FORETELL_TEST_GGUF is the path of one."""

import asyncio
import os
from pathlib import Path

import pytest

from foretell.models.model import ModelSettings, Request, UserMessage
from foretell.models.router import ModelRouter, open_provider
from foretell.models.structured_output import read_json
from foretell.questions.errors import InputError


def test_missing_file_is_named(tmp_path: Path):
    pytest.importorskip("xllamacpp")
    with pytest.raises(InputError, match="there is no model file here"):
        open_provider(f"local:{tmp_path}/none.gguf", {})


def test_local_model_answers_by_schema():
    pytest.importorskip("xllamacpp")
    path = os.environ.get("FORETELL_TEST_GGUF")
    if not path:
        pytest.skip("set FORETELL_TEST_GGUF to the path of a small .gguf file")
    schema = {"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]}
    request = Request(
        model=f"local:{path}",
        messages=(UserMessage(text="How likely is rain tomorrow? Answer with JSON."),),
        schema=schema,
        settings=ModelSettings(max_tokens=60, temperature=0.0),
    )

    async def main() -> None:
        async with ModelRouter({}) as exchange:
            reply = await exchange.complete(request)
        assert "p" in read_json(reply.text)
        assert reply.tokens.input > 0
        assert exchange.prices.dollars(request.model, reply.tokens) == 0.0

    asyncio.run(main())
