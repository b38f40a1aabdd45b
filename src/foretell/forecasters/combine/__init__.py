"""Combines several answers into one: aggregation, shrinkage, calibration, coherence, ensembles."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.combine.aggregate": (
        "Aggregate PANEL ReasonsPanel extremised logit_mean mean median trimmed"
    ),
    "foretell.forecasters.combine.calibration": (
        "Beta FittedBeta FittedIsotonic FittedPlatt HierarchicalPlatt Isotonic Platt"
    ),
    "foretell.forecasters.combine.claims": "orders",
    "foretell.forecasters.combine.coherence": "at_most_one coherent exactly_one falling implied rising",
    "foretell.forecasters.combine.crossfit": "GROUPINGS across gain groups_by leave_last_out leave_one_out rolling",
    "foretell.forecasters.combine.default": "DefaultMethod FittedTrust LearningGain Trust UNTAUGHT taught",
    "foretell.forecasters.combine.ensemble": (
        "BestSoFar Ensemble EqualWeights GreedySelection PooledWeights SkillWeights greedy_path side_by_side weighted"
    ),
    "foretell.forecasters.combine.logistic": "LogisticProblem coefficients_without fit_logistic_ridge",
    "foretell.forecasters.combine.rows": "Examples Strings TrialRows logit sigmoid",
    "foretell.forecasters.combine.rules": (
        "ChainedMethod FittedChain FittedRaw FittedRule Training TrainingOverlap apply refitted with_rule_applied"
    ),
    "foretell.forecasters.combine.saving": "KINDS from_json load save to_json",
    "foretell.forecasters.combine.shrink": "BayesShrink FittedBayesShrink FittedShrink Shrink TrialSpread",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
