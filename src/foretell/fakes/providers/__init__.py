"""Model providers that live on this machine: OpenAI, Anthropic and Gemini wire formats on real sockets."""

from foretell.fakes.providers.heard import Call, Heard, Said
from foretell.fakes.providers.server import FakeProviders, Fault

__all__ = ["Call", "FakeProviders", "Fault", "Heard", "Said"]
