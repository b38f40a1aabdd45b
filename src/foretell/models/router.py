"""Routes requests to the provider of a model, with journal, limits and budget."""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from types import CoroutineType, TracebackType
from typing import Any

from foretell.models.budget import Budget, BudgetedModel
from foretell.models.facts import ModelFacts, facts_of
from foretell.models.journal import Journal, JournalReadingModel, JournalWritingModel
from foretell.models.limited_model import limit_model
from foretell.models.limits import ModelLimits
from foretell.models.model import Model, Reply, Request
from foretell.models.names import ModelName
from foretell.models.prices import PriceList
from foretell.models.provider import ProviderClient, ProviderConfig
from foretell.models.providers.loading import load_provider
from foretell.questions.errors import InputError, MissingExtra


def api_key_for(name: ModelName, keys: Mapping[str, str]) -> str:
    """Return the API key for a provider. Raises InputError, which suggests models without a key, if it is missing."""
    provider = load_provider(name.provider)
    for variable in provider.key_variables:
        if keys.get(variable):
            return keys[variable]
    if not provider.key_variables or not provider.key_required:
        return ""
    hint = "or use a model on this machine: local:PATH.gguf or compat:NAME@http://localhost:11434/v1"
    raise InputError(f"{name.provider}:{name.name} needs a key: set {' or '.join(provider.key_variables)}, {hint}")


def open_provider(
    model: str, keys: Mapping[str, str], *, address: str | None = None, journal: Journal | None = None
) -> ProviderClient:
    """The bare client for a model; `address` replaces the provider's own. Connects on first use."""
    name = ModelName.read(model)
    provider = load_provider(name.provider)
    key = api_key_for(name, keys)
    address = address or name.url or provider.address
    return provider.open(ProviderConfig(name=name, key=key, address=address, journal=journal))


class ModelRouter:
    """One model for all names: checks the journal, finds the provider, waits for a turn and sends.

    From the outside in: journal lookup, budget (with `within`), limits, journal entry, client. Use it as an async
    context manager, so that connections are closed.
    """

    def __init__(
        self,
        keys: Mapping[str, str],
        *,
        journal: Journal | None = None,
        prices: PriceList | None = None,
        limits: Mapping[str, ModelLimits] | None = None,
        addresses: Mapping[str, str] | None = None,
        wire: Callable[[str], ProviderClient] | None = None,
    ) -> None:
        """Limits and addresses are by provider. `wire` replaces the function that opens clients, for tests."""
        self.prices = prices or PriceList()
        self._keys = keys
        self._journal = journal
        self._limits = limits or {}
        self._addresses = addresses or {}
        self._open_client = wire or self._open
        self._clients: dict[str, ProviderClient] = {}
        self._places: dict[str, Model] = {}
        self._by_name: dict[str, Model] = {}
        self._dispatch = _Dispatch(self._model)
        self._front: Model = JournalReadingModel(self._dispatch, journal) if journal else self._dispatch

    async def __aenter__(self) -> "ModelRouter":
        """Return the router. Clients are opened on first use."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close connections."""
        await self.close()

    async def close(self) -> None:
        """Close connections."""
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
        self._places.clear()
        self._by_name.clear()

    def check(self, names: Iterable[str]) -> None:
        """Raise an error before the run starts if a key or library is missing. A replay needs none."""
        if self._journal is None or self._journal.mode == "live":
            for name in names:
                parsed = ModelName.read(name)
                api_key_for(parsed, self._keys)
                provider = load_provider(parsed.provider)
                if provider.requires and find_spec(provider.requires) is None:
                    raise MissingExtra("asking a model", provider.extra)

    def learned(self, model: str) -> ModelFacts:
        """What is known about a model, including the settings that its server has refused."""
        name = ModelName.read(model)
        facts: Callable[[str], ModelFacts] = getattr(self._clients.get(name.place), "facts", facts_of)
        return facts(name.name)

    def within(self, budget: Budget) -> Model:
        """Return the same router with a budget that pays for what is not in the journal."""
        return BudgetedModel(self._dispatch, self.prices, budget, self._journal)

    def complete(self, request: Request) -> "CoroutineType[Any, Any, Reply]":
        """Return the stored reply or a new one."""
        return self._front.complete(request)

    def _open(self, model: str) -> ProviderClient:
        address = self._addresses.get(ModelName.read(model).provider)
        return open_provider(model, self._keys, address=address, journal=self._journal)

    def _model(self, model: str) -> Model:
        """The limited client for a model; all models of a provider share one."""
        if model not in self._by_name:
            name = ModelName.read(model)
            if name.place not in self._places:
                client = self._open_client(model)
                self._clients[name.place] = client
                recorded = JournalWritingModel(client, self._journal, self.prices) if self._journal else client
                limits = self._limits.get(name.place) or self._limits.get(name.provider) or ModelLimits()
                database = self._journal.database if self._journal else None
                self._places[name.place] = limit_model(recorded, limits, name.place, database)
            self._by_name[model] = self._places[name.place]
        return self._by_name[model]


class _Dispatch:
    """Sends a request to the provider of its model."""

    def __init__(self, find: Callable[[str], Model]) -> None:
        self._find = find

    def complete(self, request: Request) -> "CoroutineType[Any, Any, Reply]":
        return self._find(request.model).complete(request)
