"""The registry entry of a provider: how models are named, which key it needs, how to open a client."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Protocol

from foretell.frozen import frozen
from foretell.models.model import Model
from foretell.models.token_price import TokenPrice


class NamedModel(Protocol):
    """A parsed model name, such as `ModelName`."""

    @property
    def provider(self) -> str:
        """The provider's name."""
        ...

    @property
    def name(self) -> str:
        """The model's name at the provider."""
        ...

    @property
    def url(self) -> str:
        """The address in the name; empty if it has none."""
        ...


class ProviderClient(Model, Protocol):
    """A model that holds connections."""

    async def close(self) -> None:
        """Close the connections."""
        ...


@frozen
class ProviderConfig:
    """The arguments for opening a client."""

    name: NamedModel
    """The first model to be used. Unless the provider is `per_model`, the client also serves its other models."""
    key: str = field(default="", repr=False)
    address: str = ""
    """Address for requests: from the settings, the model's name, or the provider's own `address`."""
    journal: Any = field(default=None, repr=False)
    """The `Journal` in which a client records its batches; None if it has none."""


@frozen
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
    """Whether its models run in this process and cost nothing."""
    tiers: tuple[str, ...] = ()
    """Its service tiers besides the standard one, each with its own price."""
    price_ids: Callable[[str], Sequence[tuple[str, str]]] = lambda name: ()
    """From a model's name to (vendor, model) pairs in the public price list, best match first."""
    price: Callable[[str], TokenPrice | None] = lambda name: None
    """The price that the provider itself states for a model."""
