"""A model in a GGUF file, run by llama.cpp in this process and used like an OpenAI-compatible server."""

import asyncio
import os
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foretell.models.model import Reply, Request
from foretell.models.provider import Provider
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.client import HttpModel
from foretell.questions.errors import InputError, MissingExtra

CONTEXT_TOKENS = 16_384
"""Context size in tokens for all parallel conversations together."""
PARALLEL_CONVERSATIONS = 2
DEFAULT_REPLY_TOKENS = 1500
"""Reply limit if the request sets none, because a small model with a schema may generate for minutes."""


class LlamaCppModel:
    """Loads the weights on first use. Two conversations are answered at a time; the rest wait inside llama.cpp."""

    def __init__(self, path: str | Path, *, context: int = CONTEXT_TOKENS) -> None:
        if find_spec("xllamacpp") is None:
            raise MissingExtra("running a local model", "local")
        if not Path(path).is_file():
            raise InputError("there is no model file here", path=path, hint="local: takes the path of a .gguf file")
        self._path = Path(path)
        self._context = context
        self._loading = asyncio.Lock()
        self._server: Any = None
        self._chat: HttpModel | None = None

    async def complete(self, request: Request) -> Reply:
        """Send one request and return its reply."""
        async with self._loading:
            if self._chat is None:
                self._server = await asyncio.to_thread(self._load)
                # The server may close a connection after a streamed reply, while the next request is being sent.
                closing, place = {"Connection": "close"}, f"{self._server.listening_address}/v1"
                self._chat = HttpModel(ChatApi(stream=True), place, headers=closing)
        if request.settings.max_tokens is None:
            request = replace(request, settings=replace(request.settings, max_tokens=DEFAULT_REPLY_TOKENS))
        return await self._chat.complete(request)

    async def close(self) -> None:
        """Stop the server and free the weights."""
        if self._chat is not None:
            await self._chat.close()
        self._chat = self._server = None

    def _load(self) -> Any:
        llama: Any = import_module("xllamacpp")
        params = llama.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self._context
        params.n_parallel = PARALLEL_CONVERSATIONS
        # Threads wait for each other at every layer, so one that shares its core slows down all of them.
        threads = max(1, (os.cpu_count() or 1) - 1)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.verbosity = -1
        params.warmup = False
        try:
            return llama.Server(params)
        except (RuntimeError, ValueError) as error:
            raise InputError(f"llama.cpp cannot load this model: {error}", path=self._path) from None


GGUF_FILE = Provider(
    open=lambda config: LlamaCppModel(config.name.name),
    form="local:PATH.gguf",
    per_model=True,
    free=True,
)
"""The provider's entry in the registry."""
