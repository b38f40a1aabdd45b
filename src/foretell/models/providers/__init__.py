"""One module for each way to reach a language model."""

from foretell.interface import offer

HOMES = {
    "foretell.models.providers.chat": "ChatWire",
    "foretell.models.providers.client": "HttpAnswer HttpModel",
    "foretell.models.providers.function": "model_name",
    "foretell.models.providers.gemini": "GeminiWire",
    "foretell.models.providers.messages": "MessagesWire",
    "foretell.models.providers.responses": "ResearchingModel ResponsesWire",
    "foretell.models.providers.scripted": "ScriptCue ScriptedModel",
    "foretell.models.providers.services": "ANTHROPIC COMPATIBLE_SERVER DEEPSEEK GOOGLE MISTRAL OPENAI OPENROUTER XAI",
    "foretell.models.providers.wire": "HttpFailure Wire server_events",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
