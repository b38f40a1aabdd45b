"""A synthesis rule, which combines the children of a claim: here a built-in rule under another name."""

from dataclasses import replace

from foretell.plugins import load

RULE = replace(load("synthesis_rules", "average"), name="example_rule")
