"""A model in a GGUF file, run by llama.cpp in this process and used like an OpenAI-compatible server."""

import asyncio
import os
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foretell.models.model import Provider, Reply, Request
from foretell.models.providers.chat import ChatWire
from foretell.models.providers.client import HttpModel
from foretell.questions.errors import InputError, MissingExtra

CONTEXT_TOKENS = 16_384
"""Context size in tokens for all parallel conversations together."""
PARALLEL_CONVERSATIONS = 2
DEFAULT_REPLY_TOKENS = 1500
"""Reply limit if the request sets none: a small model held to a schema may fill its strings for minutes."""


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
                # It may close a connection after a streamed reply, just when the next request is on its way.
                closing, place = {"Connection": "close"}, f"{self._server.listening_address}/v1"
                self._chat = HttpModel(ChatWire(stream=True), place, headers=closing)
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
        wanted = llama.CommonParams()
        wanted.model.path = str(self._path)
        wanted.n_ctx = self._context
        wanted.n_parallel = PARALLEL_CONVERSATIONS
        # Threads wait for each other at every layer: one that has to share its core holds all of them up.
        threads = max(1, (os.cpu_count() or 1) - 1)
        wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
        wanted.verbosity = -1
        wanted.warmup = False
        try:
            return llama.Server(wanted)
        except (RuntimeError, ValueError) as error:
            raise InputError(f"llama.cpp cannot load this model: {error}", path=self._path) from None


GGUF_FILE = Provider(
    open=lambda config: LlamaCppModel(config.name.name),
    form="local:PATH.gguf",
    per_model=True,
    free=True,
)
"""The provider's entry in the registry."""
