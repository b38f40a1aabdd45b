"""Trees of claims: grown by agents, computed exactly, and edited with what-if."""

from foretell.interface import offer
from foretell.plugins import Names

GROUNDERS, RULES = Names("grounders"), Names("synthesis_rules")
"""Registered grounders and synthesis rules, including those of other packages."""

HOMES = {
    "foretell.forecasters.tree.arithmetic.circuit": "Circuit run_many run_ops",
    "foretell.forecasters.tree.arithmetic.compiler": "Body Gates TooManySharedClaims compile_tree",
    "foretell.forecasters.tree.arithmetic.error_bar": "error_bar leaf_spread next_trials",
    "foretell.forecasters.tree.arithmetic.evaluation": "evaluate evaluated stale_claims",
    "foretell.forecasters.tree.arithmetic.scaling": "SCALINGS bayes_net_faults scale_tree scaled",
    "foretell.forecasters.tree.arithmetic.sensitivity": "beta_paths sensitivities tornado tree_spread",
    "foretell.forecasters.tree.edits": (
        "AddNode Edit MoveNode RemoveNode Scenario SetClaim SetGrounding SetLink SetP SetReport ShareNode Unpin"
    ),
    "foretell.forecasters.tree.exports": (
        "bayes_net claim_marks link_in_numbers link_in_words outline stale_parts to_bif to_dot to_problog tree_failures"
    ),
    "foretell.forecasters.tree.forecaster": "StoredTreesForecaster TreeForecaster claim_of_target relink",
    "foretell.forecasters.tree.grounders.adaptive": "AdaptiveGrounder",
    "foretell.forecasters.tree.grounders.deep_research": (
        "DeepResearchGrounder SearchAndFetch SearchServer open_search_server"
    ),
    "foretell.forecasters.tree.grounders.notebook": "NotebookGrounder",
    "foretell.forecasters.tree.grounders.search": "AgentGrounder PlainGrounder SearchGrounder",
    "foretell.forecasters.tree.grow.analyze": "AnalysisDraft AnalysisLimits ROOT analyze child_id depth_of",
    "foretell.forecasters.tree.grow.ground": "CannotGround Grounder GroundingPool GroundingResult Leaf LeafBudget",
    "foretell.forecasters.tree.grow.grow": "TreeGrowth TreeJob",
    "foretell.forecasters.tree.grow.prompting": "ClaimSurroundings TreeQuestion",
    "foretell.forecasters.tree.grow.synthesize": "SynthesisRule Synthesizer rule_named",
    "foretell.forecasters.tree.history": (
        "ConflictingEdits TreeAuthor commit_edits history_path open_version read_history tree_at"
    ),
    "foretell.forecasters.tree.links": (
        "AverageLink FormulaAssumption FormulaLink InhibitedNoisyOrLink JudgedLink LinearLink Link NoisyOrLink "
        "ProductLogicLink"
    ),
    "foretell.forecasters.tree.proposition": (
        "Grounding Proposition Tree TreeOrigin has_own_value leaves own_value parents_of post_order"
    ),
    "foretell.forecasters.tree.settings": "GroundSettings THOUGHT_KINDS ThoughtKind ThoughtSettings TreeSettings",
    "foretell.forecasters.tree.text": "InvalidTree TreeProblem format_probability one_line",
    "foretell.forecasters.tree.thoughts": "ThoughtsForecaster",
    "foretell.forecasters.tree.tree_file": (
        "TreeFile check_file edits_from_json read_tree read_tree_file tree_from_dict tree_from_text tree_text "
        "tree_to_dict write_tree"
    ),
    "foretell.forecasters.tree.validation": "structural_problems tree_problems",
    "foretell.forecasters.tree.what_if": "apply_scenario claim_changes compare_scenarios next_ids resynthesize",
}
"""Module → its public names."""

__getattr__, __dir__ = offer(__name__, HOMES)
