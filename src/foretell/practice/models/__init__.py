"""Model providers that live on this machine: OpenAI, Anthropic and Gemini wire formats on real sockets."""

from foretell.practice.models.formats import ModelQuery, ScriptedCall, ScriptedReply
from foretell.practice.models.server import ModelFault, PracticeModels

__all__ = ["ModelFault", "ModelQuery", "PracticeModels", "ScriptedCall", "ScriptedReply"]
