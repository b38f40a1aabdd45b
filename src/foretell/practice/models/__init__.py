"""Practice models: every provider's format on a port of this machine, answered by scripts."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.models.formats": "ModelQuery OfferedTool ProviderFormat ScriptedCall ScriptedReply format_of",
    "foretell.practice.models.improvise": "example",
    "foretell.practice.models.scripts": "agent_script arena_script tree_script",
    "foretell.practice.models.server": "PracticeModels Script",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
