"""A model provider as the registry sees it: how models are named, which key it needs, how to open a client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from foretell.models.model import Model
from foretell.plugins import load

if TYPE_CHECKING:
    from foretell.models.journal import Journal
    from foretell.models.names import ModelName
    from foretell.models.prices import TokenPrice


class ProviderClient(Model, Protocol):
    """A model that holds connections."""

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    """What a client is opened with."""

    name: "ModelName"
    """The first model to be asked. Unless the provider is `per_model`, the client also serves its other models."""
    key: str = field(default="", repr=False)
    address: str = ""
    """Address for requests: from the settings, the model's name, or the provider's own `address`."""
    journal: "Journal | None" = field(default=None, repr=False)
    """Where a client that submits batches records them."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A way to reach language models. Everything except `open` has a default that suits a service without a key."""

    open: Callable[[ProviderConfig], ProviderClient]
    """Creates the client, which connects on first use."""
    form: str = ""
    """How to write the names of its models, such as `openai:NAME`; shown when a name is wrong."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first one that is set is used."""
    key_required: bool = True
    address: str = ""
    requires: str = ""
    """A Python module that is needed to use the provider."""
    extra: str = "llm"
    """The extra of foretell that installs the module."""
    per_model: bool = False
    """Whether every model has its own client, limits and bill, like files on this machine."""
    named_with_address: bool = False
    """Whether model names end in the server's address: `PROVIDER:NAME@URL`."""
    free: bool = False
    """Whether its models cost nothing."""
    tiers: tuple[str, ...] = ()
    """Its service tiers besides the standard one, each with its own price."""
    price_ids: Callable[[str], Sequence[tuple[str, str]]] = lambda name: ()
    """From a model's name to (vendor, model) pairs in the public price list, best match first."""
    price: Callable[[str], "TokenPrice | None"] = lambda name: None
    """The price that the provider itself states for a model."""


def load_provider(name: str) -> Provider:
    """The provider with this name; registered functions and models are wrapped as providers."""
    plugin = load("models", name)
    if isinstance(plugin, Provider):
        return plugin
    from foretell.models.providers.function import function_provider

    return function_provider(name, cast("Callable[..., Any] | Mapping[str, Any] | Model", plugin))
