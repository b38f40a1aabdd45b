"""Study: which differences between forecasters remain when it is taken into account that there are many of them?"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import Comparison, benjamini_hochberg, holm
from foretell.questions.errors import InputError
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.numbers import plural
from foretell.report.study import StudyChart, StudyColumn, StudyResult, StudyTable
from foretell.request import setting
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.scores import as_interval, brier_of, paired_gap

LEVEL = 0.05
NOTES = (
    "p is two-sided, from resampling whole questions. Holm bounds the chance of a single false finding among all "
    "comparisons (1979); Benjamini–Hochberg bounds the expected share of false findings (1995).",
    "Resampling gives no p below 2 in the number of draws: with many comparisons raise --draws, else nothing can pass.",
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
    tables = complete_configs(data)
    if len(tables) < 2:
        raise InputError("a comparison needs at least two forecasters", hint="name more of them with --config")
    reference = options.reference or best_config(tables)
    if reference not in tables:
        raise InputError(f"no forecaster is called {reference!r}", column="--reference", hint=", ".join(tables))
    pairs = [(name, reference) for name in tables if name != reference]
    if options.all_pairs:
        pairs = list(combinations(tables, 2))
    gaps: dict[str, Comparison] = {}
    for done, (first, second) in enumerate(pairs):
        data.progress(done, len(pairs))
        gaps[f"{first} − {second}"] = _gap(tables, first, second, data.resampling)
    adjusted = holm([one.p_two_sided for one in gaps.values()]).tolist()
    rows = [ForestRow(name=name, interval=as_interval(one)) for name, one in gaps.items()]
    chart = forest_plot(rows, label="difference in BI", decimals=2, reference=0.0)
    return StudyResult(
        name="many-comparisons",
        title="Many comparisons at once",
        sentences=(_sentence(gaps, adjusted),),
        tables=(_table(gaps, adjusted),),
        charts=(StudyChart(name="differences", title="Differences in Brier index", chart=chart),),
        notes=(*NOTES, *study_notes(data, tables)),
        settings={**study_settings(data, tables), "reference": None if options.all_pairs else reference},
    )


def _gap(tables: Mapping[str, Examples], first: str, second: str, how: Resampling) -> Comparison:
    a, b = (brier_of(tables[name].rows.raw, tables[name]) for name in (first, second))
    return paired_gap(a, b, tables[first], OVERALL, how)


def _table(gaps: Mapping[str, Comparison], adjusted: Sequence[float]) -> StudyTable:
    columns = (
        StudyColumn(label="Δ", decimals=2, tip="difference in Brier index on shared targets, questions resampled"),
        StudyColumn(label="p", decimals=4, tip="two-sided, without correction"),
        StudyColumn(label="Holm", decimals=4, tip="adjusted so that any false finding is rare"),
        StudyColumn(label="BH", decimals=4, tip="Benjamini–Hochberg: adjusted so that few of the findings are false"),
        StudyColumn(label="n", decimals=0, tip="targets both answered"),
    )
    shares = benjamini_hochberg([one.p_two_sided for one in gaps.values()]).tolist()
    rows = (
        (name, {"Δ": one, "p": one.p_two_sided, "Holm": whole, "BH": share, "n": one.n})
        for (name, one), whole, share in zip(gaps.items(), adjusted, shares, strict=True)
    )
    return StudyTable.build("Differences and adjusted p-values", columns, rows, row_header="Pair")


def _sentence(gaps: Mapping[str, Comparison], adjusted: Sequence[float]) -> str:
    alone = sum(one.p_two_sided < LEVEL for one in gaps.values())
    remain = [name for name, p in zip(gaps, adjusted, strict=True) if p < LEVEL]
    listed = f": {', '.join(remain[:5])}{' and others' if len(remain) > 5 else ''}" if remain else ""
    return f"Of {plural(len(gaps), 'comparison')}, {alone} have p < 0.05 alone and {len(remain)} after Holm{listed}."
