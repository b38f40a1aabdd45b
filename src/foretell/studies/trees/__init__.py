"""Studies of proposition trees: noise, error bars, stability, cost, consensus."""

from foretell.interface import offer

HOMES = {
    "foretell.studies.trees.inputs": "ForecastCost read_cost_table read_trees",
    "foretell.studies.trees.noise": (
        "DISTURBANCES DRAWS NoiseEffects RATIOS add_uniform_noise noise_effects replace_by_chance reverse_by_chance "
        "rms_shift variance_lost variance_lost_among"
    ),
    "foretell.studies.trees.world": (
        "LINK_KINDS LinkKind RULES Simulation TreeWorld TreeWorldSettings draw_outcomes draw_questions draw_shape "
        "draw_world"
    ),
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
