"""Practice models: every provider's API format on a local port, answered by scripts."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.models.formats": "ModelQuery OfferedTool ProviderFormat ScriptedCall ScriptedReply format_of",
    "foretell.practice.models.scripts": "agent_script arena_script tree_script",
    "foretell.practice.models.server": "PracticeModels Script example",
}
"""Module → the names that the rest of foretell uses."""

__getattr__, __dir__ = offer(__name__, HOMES)
