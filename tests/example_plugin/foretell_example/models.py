"""A model provider."""

from foretell.models.model import Reply, Request, TokenCount
from foretell.models.provider import Provider, ProviderConfig
from foretell.models.token_price import TokenPrice


class Shouting:
    """Answers with the last message in capitals; a real provider would post the request to its address."""

    def __init__(self, config: ProviderConfig) -> None:
        self._key = config.key

    async def complete(self, request: Request) -> Reply:
        """Answer a request."""
        text = request.messages[-1].text.upper()
        return Reply(text=text, model=request.model, tokens=TokenCount(input=100, output=10))

    async def close(self) -> None:
        """Close nothing, because nothing is open."""


PROVIDER = Provider(
    open=Shouting,
    form="example_model:NAME",
    key_variables=("EXAMPLE_MODEL_KEY",),
    price=lambda name: TokenPrice(input=1_000, output=10_000),
)
