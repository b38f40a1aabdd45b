"""A claim as a tree of propositions: grown by agents, computed exactly, changed by what-if."""

from foretell.plugins import Names

GROUNDERS, RULES = Names("grounders"), Names("synthesis_rules")
"""Who can judge leaves and how children can be joined, those of other packages included."""
