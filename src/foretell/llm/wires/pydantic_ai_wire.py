"""Anthropic and Gemini through pydantic-ai, which knows their dialects: caching, thinking, schemas, tool choice."""

from typing import TYPE_CHECKING, Any, Literal

from foretell.llm.failures import ReplyLost
from foretell.llm.message import Assistant, Reply, Request
from foretell.llm.model import ModelBusy, ModelError, ModelRefused
from foretell.llm.names import ModelName
from foretell.llm.wires.problems import http_problem, without_key
from foretell.questions.problems import MissingExtra

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

Vendor = Literal["anthropic", "google"]
USUAL_OUTPUT = 16_000
"""Anthropic wants a limit on every request; above about 21,000 tokens its SDK insists on streaming."""
EFFORTS: dict[str, Any] = {"none": False, "low": "low", "medium": "medium", "high": "high"}


class PydanticAIWire:
    """One provider; its models share a client, made on first use."""

    def __init__(self, vendor: Vendor, key: str, *, address: str | None = None) -> None:
        try:
            import pydantic_ai.direct  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError:
            raise MissingExtra(f"asking {vendor} models", "llm") from None
        self._vendor: Vendor = vendor
        self._key = key
        self._provider = _provider(vendor, key, address)
        self._models: dict[str, Model] = {}

    def __repr__(self) -> str:
        return f"PydanticAIWire({self._vendor})"

    async def complete(self, request: Request) -> Reply:
        """One request, one reply; the SDK's own retries are off, because ours count money."""
        from pydantic_ai.exceptions import AgentRunError, UserError

        model = self._model(ModelName.read(request.model).name)
        try:
            return await self._ask(model, request, forced=True)
        except UserError as error:
            problem = str(error)
        except AgentRunError as error:
            raise self._problem(request.model, error) from None
        if request.force is None:
            raise ModelRefused(f"{request.model}: {without_key(problem, self._key)}")
        # Some models cannot think and be forced to call a tool at once: let them choose, the loop asks again.
        try:
            return await self._ask(model, request, forced=False)
        except UserError as error:
            raise ModelRefused(f"{request.model}: {without_key(str(error), self._key)}") from None
        except AgentRunError as error:
            raise self._problem(request.model, error) from None

    async def close(self) -> None:
        """Close connections."""
        async with self._provider:
            self._models.clear()

    async def _ask(self, model: "Model", request: Request, *, forced: bool) -> Reply:
        from pydantic_ai.direct import model_request

        from foretell.llm.wires.pydantic_ai_words import conversation, parameters, reply

        response = await model_request(
            model,
            conversation(request.messages),
            model_settings=self._settings(request, model, forced=forced),
            model_request_parameters=parameters(request, model),
        )
        return reply(response, request)

    def _settings(self, request: Request, model: "Model", *, forced: bool) -> "ModelSettings":
        given = request.settings
        sent: ModelSettings = {"max_retries": 0}
        if given.temperature is not None and not model.profile.get("anthropic_disallows_sampling_settings", False):
            sent["temperature"] = given.temperature
        if given.seed is not None:
            sent["seed"] = given.seed
        if self._vendor == "anthropic":
            sent["max_tokens"] = given.max_tokens or USUAL_OUTPUT
            # A talk with tools grows and is read again at every step; a single question would pay to write the cache.
            sent["cache"] = {"messages": bool(request.tools)}
        elif given.max_tokens is not None:
            sent["max_tokens"] = given.max_tokens
        if given.effort is not None and self._may_think(request, model):
            sent["thinking"] = EFFORTS[given.effort]
        if request.force is not None and forced:
            sent["tool_choice"] = "required" if request.force == "*" else [request.force]
        return sent

    def _may_think(self, request: Request, model: "Model") -> bool:
        """Older Claude models want their thoughts back with the calls they made; a turn put together anew has none."""
        turns = [message for message in request.messages if isinstance(message, Assistant) and message.calls]
        adaptive = bool(model.profile.get("anthropic_supports_adaptive_thinking", False))
        return self._vendor != "anthropic" or adaptive or all(turn.thoughts for turn in turns)

    def _model(self, name: str) -> "Model":
        if name not in self._models:
            self._models[name] = _model(self._vendor, name, self._provider)
        return self._models[name]

    def _problem(self, model: str, error: Exception) -> ModelError:
        from pydantic_ai import exceptions as theirs

        told = without_key(str(error), self._key)
        if isinstance(error, theirs.ModelQuotaExceededError):
            return ModelRefused(f"{model}: {told} (no credit is left)")
        if isinstance(error, theirs.ModelHTTPError):
            told = without_key(str(error.body or ""), self._key)
            return http_problem(error.status_code, told, model=model, wait=error.retry_after)
        if isinstance(error, theirs.ModelRateLimitError | theirs.ModelUnavailableError):
            return ModelBusy(f"{model}: {told}", wait=error.retry_after)
        if isinstance(error, theirs.ModelRequestRejectedError):
            return ModelRefused(f"{model}: {told}")
        if isinstance(error, theirs.ModelConnectionError) and error.phase == "connect":
            return ModelBusy(f"{model}: no connection")
        return ReplyLost(f"{model}: {told or type(error).__name__}")


def _provider(vendor: Vendor, key: str, address: str | None) -> Any:
    if vendor == "anthropic":
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicProvider(api_key=key, base_url=address)
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleProvider(api_key=key, base_url=address)


def _model(vendor: Vendor, name: str, provider: Any) -> "Model":
    if vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel

        return AnthropicModel(name, provider=provider)
    from pydantic_ai.models.google import GoogleModel

    return GoogleModel(name, provider=provider)
