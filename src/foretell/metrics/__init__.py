"""Scores, resampling, comparison and power: functions of arrays that know no questions and read no files."""

from foretell.interface import offer

HOMES = {
    "foretell.metrics.agreement": (
        "chain_gap divergence_matrix exclusivity_score jensen_shannon kappa_from_sums logical_chain_score "
        "rater_agreement"
    ),
    "foretell.metrics.arrays": "Bools Floats Ints as_probabilities as_vector as_weights group_sums",
    "foretell.metrics.bootstrap": (
        "DEFAULT_RESAMPLING Interval Resampling bootstrap_score bootstrap_sums brier_index_from_sums expanded_level "
        "mean_from_sums mean_interval rate_interval share_interval"
    ),
    "foretell.metrics.calibration": (
        "bin_codes calibration_line ece murphy_decomposition reliability_bins width_edges wilson_interval"
    ),
    "foretell.metrics.clusters": "ResamplingDesign factorise resample_counts",
    "foretell.metrics.comparison": (
        "Comparison benjamini_hochberg compare_paired compare_pairs holm mcnemar_matrix one_sided_p stars two_sided_p"
    ),
    "foretell.metrics.decisions": (
        "best_threshold consensus_matrix cross_fit_threshold hard_score_variance score_threshold"
    ),
    "foretell.metrics.difficulty": (
        "adjusted_brier adjusted_brier_index difficulty_anchor market_difficulty question_difficulty"
    ),
    "foretell.metrics.effects": "alternating_effects mixed_effects_check two_way_anova two_way_effects",
    "foretell.metrics.format": "bracket number plural signed",
    "foretell.metrics.metric": (
        "DecisionRows LOG_FLOOR METRICS MetricRows STANDARD_METRICS payoffs return_metric sharpe_metric"
    ),
    "foretell.metrics.power": "PowerTarget design_effect paired_power plan_from_pilot questions_needed",
    "foretell.metrics.returns": (
        "Bettor RISK_NEUTRAL_BETTOR crra_stakes kalshi_fee no_fee normalised_price payoff proportional_fee "
        "sharpe_from_sums"
    ),
    "foretell.metrics.scores": (
        "brier brier_index cdf_bucket_of cdf_buckets crps_cdf crps_quantiles crps_samples interval_covers "
        "interval_score log_score mean_brier metaculus_baseline metaculus_baseline_continuous "
        "metaculus_baseline_options metaculus_peer metaculus_peer_continuous pinball right_side rps"
    ),
}
"""Maps each module to the names that other packages import from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
