"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.models.providers.chat import ChatWire as ChatWire
from foretell.models.providers.client import HttpAnswer as HttpAnswer
from foretell.models.providers.client import HttpModel as HttpModel
from foretell.models.providers.function import model_name as model_name
from foretell.models.providers.gemini import GeminiWire as GeminiWire
from foretell.models.providers.messages import MessagesWire as MessagesWire
from foretell.models.providers.responses import ResearchingModel as ResearchingModel
from foretell.models.providers.responses import ResponsesWire as ResponsesWire
from foretell.models.providers.scripted import ScriptCue as ScriptCue
from foretell.models.providers.scripted import ScriptedModel as ScriptedModel
from foretell.models.providers.services import ANTHROPIC as ANTHROPIC
from foretell.models.providers.services import COMPATIBLE_SERVER as COMPATIBLE_SERVER
from foretell.models.providers.services import DEEPSEEK as DEEPSEEK
from foretell.models.providers.services import GOOGLE as GOOGLE
from foretell.models.providers.services import MISTRAL as MISTRAL
from foretell.models.providers.services import OPENAI as OPENAI
from foretell.models.providers.services import OPENROUTER as OPENROUTER
from foretell.models.providers.services import XAI as XAI
from foretell.models.providers.wire import HttpFailure as HttpFailure
from foretell.models.providers.wire import Wire as Wire
from foretell.models.providers.wire import server_events as server_events
