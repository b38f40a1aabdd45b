"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.practice.models.formats import ModelQuery as ModelQuery
from foretell.practice.models.formats import OfferedTool as OfferedTool
from foretell.practice.models.formats import ProviderFormat as ProviderFormat
from foretell.practice.models.formats import ScriptedCall as ScriptedCall
from foretell.practice.models.formats import ScriptedReply as ScriptedReply
from foretell.practice.models.formats import format_of as format_of
from foretell.practice.models.scripts import agent_script as agent_script
from foretell.practice.models.scripts import arena_script as arena_script
from foretell.practice.models.scripts import tree_script as tree_script
from foretell.practice.models.server import PracticeModels as PracticeModels
from foretell.practice.models.server import Script as Script
from foretell.practice.models.server import example as example
