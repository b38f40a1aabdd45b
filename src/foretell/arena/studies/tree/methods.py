"""The methods that studies compare in a made-up world where no others are given."""

from dataclasses import replace

from foretell.arena.studies.tree.players import DIRECT, RULES, Method, SimulatedGrounder

AGAIN = 10


def usual(grounder: SimulatedGrounder | None = None) -> list[Method]:
    """The grounder alone, the same asked ten times, and trees under every rule, all with the same grounder."""
    alone = Method(name="grounder alone", rule=DIRECT, grounder=grounder or SimulatedGrounder())
    trees = [replace(alone, name=f"tree, {rule}", rule=rule) for rule in RULES]
    return [alone, replace(alone, name=f"mean of {AGAIN}", repeats=AGAIN), *trees]
