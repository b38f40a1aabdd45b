"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.forecasters.agent.actions import AgentToolset as AgentToolset
from foretell.forecasters.agent.agent import BeliefAgent as BeliefAgent
from foretell.forecasters.agent.agent import without_numbers as without_numbers
from foretell.forecasters.agent.answer_format import AnswerFormat as AnswerFormat
from foretell.forecasters.agent.answer_format import LEVELS as LEVELS
from foretell.forecasters.agent.answer_format import thresholds_of as thresholds_of
from foretell.forecasters.agent.belief import starting_belief as starting_belief
from foretell.forecasters.agent.loop import AgentTrial as AgentTrial
from foretell.forecasters.agent.loop import StopReason as StopReason
from foretell.forecasters.agent.settings import AgentOptions as AgentOptions
from foretell.forecasters.agent.settings import AgentSettings as AgentSettings
from foretell.forecasters.agent.settings import BATCH as BATCH
from foretell.forecasters.agent.settings import Clamp as Clamp
from foretell.forecasters.agent.settings import FULL as FULL
from foretell.forecasters.agent.settings import NOBELIEF as NOBELIEF
from foretell.forecasters.agent.settings import VARIANTS as VARIANTS
from foretell.forecasters.agent.settings import ZERO_SHOT as ZERO_SHOT
