"""Anthropic and Google as the registry knows them; the library that asks them is loaded with the first client."""

from typing import Literal

from foretell.models.provider import Provider, ProviderClient, ProviderConfig
from foretell.questions.errors import MissingExtra


def _provider(vendor: Literal["anthropic", "google"], *key_variables: str) -> Provider:
    def open_client(config: ProviderConfig) -> ProviderClient:
        try:
            from foretell.models.providers.pydantic_ai_client import PydanticAIClient
        except ImportError:
            raise MissingExtra(f"asking {vendor} models", "llm") from None
        return PydanticAIClient(vendor, config.key, address=config.address or None)

    return Provider(
        open=open_client,
        form=f"{vendor}:NAME",
        key_variables=key_variables,
        price_ids=lambda name: [(vendor, name)],
    )


ANTHROPIC = _provider("anthropic", "ANTHROPIC_API_KEY")
GOOGLE = _provider("google", "GOOGLE_API_KEY", "GEMINI_API_KEY")
