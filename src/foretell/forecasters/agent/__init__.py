"""The belief agent: researches step by step and keeps a written belief."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.agent.actions": "AgentToolset",
    "foretell.forecasters.agent.agent": "BeliefAgent without_numbers",
    "foretell.forecasters.agent.answer_format": "AnswerFormat LEVELS thresholds_of",
    "foretell.forecasters.agent.belief": "starting_belief",
    "foretell.forecasters.agent.loop": "AgentTrial StopReason",
    "foretell.forecasters.agent.settings": "AgentOptions AgentSettings BATCH Clamp FULL NOBELIEF VARIANTS ZERO_SHOT",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
