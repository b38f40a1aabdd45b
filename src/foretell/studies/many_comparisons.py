"""Study: which differences between forecasters remain when it is taken into account that there are many of them?"""

from itertools import combinations

from foretell.metrics.comparison import Comparison, benjamini_hochberg, holm
from foretell.questions.errors import InputError
from foretell.report.numbers import plural
from foretell.report.study import StudyResult
from foretell.request import setting
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import best_config, complete_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, count, forest_chart, table
from foretell.studies.scores import as_interval, paired_gap, raw_brier

LEVEL = 0.05
NOTES = (
    "p is two-sided, from resampling whole questions. Holm bounds the chance of a single false finding among all "
    "comparisons (1979); Benjamini–Hochberg bounds the expected share of false findings (1995).",
    "Resampling gives no p below 2 in the number of draws: with many comparisons raise --draws, else nothing can pass.",
)
COLUMNS = (
    column("Δ", "difference in Brier index on shared targets, questions resampled", 2),
    column("p", "two-sided, without correction", 4),
    column("Holm", "adjusted so that any false finding is rare", 4),
    column("BH", "Benjamini–Hochberg: adjusted so that few of the findings are false", 4),
    count("n", "targets both answered"),
)


class ManyComparisonsOptions(TableOptions):
    """The forecasters, and which of them are compared."""

    reference: str | None = setting(None, "Compare all others with this one (default: the best).", metavar="NAME")
    all_pairs: bool = setting(False, "Compare every forecaster with every other.")


def study(inputs: DataInputs, options: ManyComparisonsOptions) -> StudyResult:
    """Which differences remain among many comparisons (Holm)?

    All others against one forecaster, or all pairs, with p-values adjusted for the number of comparisons.

      foretell study many-comparisons -f forecasts.csv -o outcomes.csv --all-pairs
    """
    data = inputs.data(options)
    configs = complete_configs(data, two_for="a comparison")
    reference = options.reference or best_config(configs)
    if reference not in configs:
        raise InputError(f"no forecaster is called {reference!r}", column="--reference", hint=", ".join(configs))
    pairs = [(name, reference) for name in configs if name != reference]
    if options.all_pairs:
        pairs = list(combinations(configs, 2))
    gaps: dict[str, Comparison] = {}
    for done, (first, second) in enumerate(pairs):
        data.progress(done, len(pairs))
        a, b = (raw_brier(configs[name]) for name in (first, second))
        gaps[f"{first} − {second}"] = paired_gap(a, b, configs[first], OVERALL, data.resampling)
    p = [one.p_two_sided for one in gaps.values()]
    whole, shares = holm(p).tolist(), benjamini_hochberg(p).tolist()
    rows = {
        name: (one, one.p_two_sided, *adjusted, one.n)
        for (name, one), *adjusted in zip(gaps.items(), whole, shares, strict=True)
    }
    remain = [name for name, adjusted in zip(gaps, whole, strict=True) if adjusted < LEVEL]
    listed = f": {', '.join(remain[:5])}{' and others' if len(remain) > 5 else ''}" if remain else ""
    drawn = {name: as_interval(one) for name, one in gaps.items()}
    title = "Differences in Brier index"
    result = StudyResult(
        name="many-comparisons",
        title="Many comparisons at once",
        sentences=(
            f"Of {plural(len(gaps), 'comparison')}, {sum(one < LEVEL for one in p)} have p < 0.05 alone and "
            f"{len(remain)} after Holm{listed}.",
        ),
        tables=(table("Differences and adjusted p-values", "Pair", COLUMNS, rows),),
        charts=(forest_chart("differences", title, drawn, "difference in BI", decimals=2, reference=0.0),),
        notes=NOTES,
    )
    return with_scope(result, data, configs, settings={"reference": None if options.all_pairs else reference})
