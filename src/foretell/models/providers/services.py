"""Hosted services and compatible servers, one entry each."""

from foretell.models.provider import Provider, ProviderConfig
from foretell.models.providers.api_format import ApiFormat
from foretell.models.providers.batches import AnthropicBatches, BatchFormat, GeminiBatches, OpenAIBatches
from foretell.models.providers.chat import ChatApi
from foretell.models.providers.client import HttpModel
from foretell.models.providers.gemini import GeminiApi
from foretell.models.providers.messages import MessagesApi
from foretell.models.providers.responses import ResponsesApi
from foretell.models.token_price import FREE_OF_CHARGE

TIERS = ("flex", "priority", "batch")
VENDOR_IDS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "google",
    "meta-llama": "meta",
    "mistralai": "mistral",
    "moonshotai": "moonshotai",
    "openai": "openai",
    "x-ai": "x-ai",
}
"""OpenRouter passes on the vendors' prices: the vendor's entry is used if its own is missing."""


def http_service(  # noqa: PLR0913 - what services differ in
    name: str,
    api_format: ApiFormat,
    address: str,
    *key_variables: str,
    price_id: str = "",
    headers: dict[str, str] | None = None,
    tiers: tuple[str, ...] = (),
    batches: BatchFormat | None = None,
) -> Provider:
    """Return a provider for a hosted service. Packages use it to add one."""

    def open_client(config: ProviderConfig) -> HttpModel:
        return HttpModel(
            api_format, config.address, config.key, headers=headers, batches=batches, journal=config.journal
        )

    return Provider(
        open=open_client,
        form=f"{name}:NAME",
        key_variables=key_variables,
        address=address,
        tiers=tiers,
        price_ids=lambda model: [(price_id or name, model)],
    )


def _behind_openrouter(name: str) -> list[tuple[str, str]]:
    vendor, _, model = name.partition("/")
    if vendor == "perplexity":  # Only the vendor's entry has the fee per request.
        return [("perplexity", model)]
    return [("openrouter", name)] + ([(VENDOR_IDS[vendor], model)] if vendor in VENDOR_IDS else [])


OPENAI = http_service(
    "openai",
    ResponsesApi(),
    "https://api.openai.com/v1",
    "OPENAI_API_KEY",
    tiers=(*TIERS, "ultrafast"),
    batches=OpenAIBatches(),
)
ANTHROPIC = http_service(
    "anthropic",
    MessagesApi(),
    "https://api.anthropic.com",
    "ANTHROPIC_API_KEY",
    tiers=("batch",),
    batches=AnthropicBatches(),
)
GOOGLE = http_service(
    "google",
    GeminiApi(),
    "https://generativelanguage.googleapis.com",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    tiers=TIERS,
    batches=GeminiBatches(),
)
XAI = http_service(
    "xai", ResponsesApi(forced="function", cache_key=False), "https://api.x.ai/v1", "XAI_API_KEY", price_id="x-ai"
)
DEEPSEEK = http_service(
    "deepseek",
    ResponsesApi(forced="function", cache_key=False, encrypted=False),
    "https://api.deepseek.com",
    "DEEPSEEK_API_KEY",
)
MISTRAL = http_service("mistral", ChatApi(seed="random_seed"), "https://api.mistral.ai/v1", "MISTRAL_API_KEY")
GROQ = http_service("groq", ChatApi(), "https://api.groq.com/openai/v1", "GROQ_API_KEY")
MOONSHOT = http_service("moonshot", ChatApi(), "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", price_id="moonshotai")
OPENROUTER = Provider(
    open=lambda config: HttpModel(
        ChatApi(effort="reasoning", cache_marks=("anthropic/",), require_parameters=True),
        config.address,
        config.key,
        headers={"X-Title": "foretell"},
    ),
    form="openrouter:VENDOR/NAME",
    key_variables=("OPENROUTER_API_KEY",),
    address="https://openrouter.ai/api/v1",
    price_ids=_behind_openrouter,
    price=lambda name: FREE_OF_CHARGE if name.endswith(":free") else None,
)
COMPATIBLE_SERVER = Provider(
    open=lambda config: HttpModel(ChatApi(stream=True), config.address, config.key),
    form="compat:NAME@http://HOST:PORT/v1",
    # Sent if it is set. Most servers need no key.
    key_variables=("COMPAT_API_KEY",),
    key_required=False,
    named_with_address=True,
)
