"""Study: how does the score depend on how long before the outcome a question was asked?"""

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Bools
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, brier_index_from_sums
from foretell.metrics.clusters import ResamplingDesign
from foretell.report.numbers import number
from foretell.report.study import CellValue, StudyResult
from foretell.studies.configurations import complete_configs, shown_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, forest_chart, table
from foretell.studies.scores import raw_brier

BOUNDS = {"up to a week": 7.0, "up to a month": 31.0, "up to three months": 92.0, "up to a year": 366.0}
"""Days from asking to resolution, up to and including."""
NOTES = (
    "Days from asking to resolution: the horizon where the table has one, else the time until the outcome was known. "
    "Questions of different lead times are different questions: a slope here is no proof that time is the reason.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How does the score fall with the time to resolution?

    Brier index by days from asking to resolution, by forecaster.
    """
    data = inputs.data(options)
    configs = complete_configs(data)
    groups = _by_lead_time(next(iter(configs.values())))
    index = {
        name: {label: _index(examples, member, data.resampling) for label, member in groups.items()}
        for name, examples in configs.items()
    }
    rows: dict[str, list[CellValue]] = {name: [*by_group.values()] for name, by_group in index.items()}
    rows["targets"] = [int(member.sum()) for member in groups.values()]
    means = {label: [one.estimate for by in index.values() if (one := by[label]) is not None] for label in groups}
    parts = [f"{label} {number(float(np.mean(scores)), 1)}" for label, scores in means.items() if scores]
    columns = [column(label, f"Brier index of {int(member.sum())} targets") for label, member in groups.items()]
    result = StudyResult(
        name="lead-time",
        title="Score by lead time",
        sentences=(f"Brier index by time to resolution, mean over forecasters: {'; '.join(parts)}.",),
        tables=(table("Brier index by lead time", "Forecaster", columns, rows, styles={"targets": "anchor"}),),
        charts=tuple(
            forest_chart(f"lead-time-{place}", f"{name} by lead time", index[name], "Brier index")
            for place, name in enumerate(shown_configs(data, configs), start=1)
        ),
        notes=NOTES,
    )
    return with_scope(result, data, configs)


def _by_lead_time(examples: Examples) -> dict[str, Bools]:
    """Targets by the days from asking to resolution, the empty groups left out."""
    waited = (examples.known_on - examples.rows.due).astype("m8[D]").astype(np.float64)
    days = np.where(np.isfinite(examples.rows.horizon), examples.rows.horizon, waited)
    group = np.searchsorted(list(BOUNDS.values()), days)
    members = {label: group == place for place, label in enumerate((*BOUNDS, "longer"))}
    return {label: member for label, member in members.items() if member.any()}


def _index(examples: Examples, member: Bools, how: Resampling) -> Interval | None:
    score = raw_brier(examples)
    known = member & np.isfinite(score)
    if not known.any():
        return None
    design = ResamplingDesign(cluster=examples.rows.cluster[known], weight=examples.weight[known])
    return bootstrap_score(score[known], design, statistic=brier_index_from_sums, resampling=how)
