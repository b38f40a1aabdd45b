"""What the registry knows of a model provider: how its models are named, which key it needs, how to open a client."""

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
        """Close them."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    """What a client is opened with."""

    name: "ModelName"
    """The first model that is asked; unless the provider is `per_model`, the client answers for its others too."""
    key: str = field(default="", repr=False)
    address: str = ""
    """Where to send requests: from the settings, the model's name, or the provider's own `address`."""
    journal: "Journal | None" = field(default=None, repr=False)
    """Where a client that hands requests in to be answered later remembers that it did."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """One way to reach language models. Everything but `open` has a default that suits a service without a key."""

    open: Callable[[ProviderConfig], ProviderClient]
    """Makes the client, which connects on first use."""
    form: str = ""
    """How names of its models are written, such as `openai:NAME`; shown to whoever writes one wrongly."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first that is set counts."""
    key_required: bool = True
    address: str = ""
    requires: str = ""
    """A module without which no model of the provider can be asked."""
    extra: str = "llm"
    """The optional part of foretell that installs the module."""
    per_model: bool = False
    """Whether every model has a client, limits and a bill of its own, as files on this machine have."""
    named_with_address: bool = False
    """Whether names end in the address of their server: `PROVIDER:NAME@URL`."""
    free: bool = False
    """Whether nobody sends a bill."""
    tiers: tuple[str, ...] = ()
    """Service tiers it has beside the standard one; they have prices of their own."""
    price_ids: Callable[[str], Sequence[tuple[str, str]]] = lambda name: ()
    """From a model's name to where its price may stand in the public list: (vendor, model) pairs, the best first."""
    price: Callable[[str], "TokenPrice | None"] = lambda name: None
    """What the provider itself says that a model's tokens cost."""


def load_provider(name: str) -> Provider:
    """The provider of a name; plain functions and models that are registered as one are wrapped."""
    plugin = load("models", name)
    if isinstance(plugin, Provider):
        return plugin
    from foretell.models.providers.function import function_provider

    return function_provider(name, cast("Callable[..., Any] | Mapping[str, Any] | Model", plugin))
