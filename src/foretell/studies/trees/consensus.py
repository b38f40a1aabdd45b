"""Study: do methods get different questions right, and do they say the same? McNemar's test and agreement of all pairs.

After Analytica (2026), D.1 and D.3.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from foretell.metrics.arrays import Floats
from foretell.metrics.comparison import Comparison, PairwiseMatrix, compare_all, holm
from foretell.metrics.decisions import consensus_matrix
from foretell.metrics.mcnemar import McNemarMatrix, mcnemar_matrix
from foretell.questions.errors import InputError
from foretell.report.charts.heatmap import difference_heatmap, distance_heatmap
from foretell.report.numbers import bracket, number, plural, signed
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, table
from foretell.studies.scores import right_answers

MOST = 24
"""Methods shown."""
NOTES = (
    "A target counts as answered rightly where p is on the side of one half on which it came out; exactly one half is "
    "wrong. Trials are joined by their logit mean.",
    "McNemar's test takes targets for independent. Horizons of one question and questions of one day are not, so its "
    "p-values and intervals (Newcombe 1998) are too sure on such data, as the paper's are. Δ, clusters resamples whole "
    "clusters instead.",
    "Agreement is the share of targets that two methods put on the same side. Methods that answer from the same "
    "evidence agree, right or wrong.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Who is right where others are wrong (McNemar)?

    All pairs of methods.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    if len(tables) < 2:
        raise InputError("agreement needs at least two methods", hint="name more of them with --config")
    p = np.stack([one.rows.raw for one in tables.values()])
    outcome = next(iter(tables.values())).outcome
    right = right_answers(p, outcome)
    order = np.argsort(-np.nanmean(right, axis=1), kind="stable")[:MOST]
    names = [list(tables)[i] for i in order]
    tests = mcnemar_matrix(right[order].T)
    side = np.where(np.isnan(p), np.nan, p > 0.5)[order]
    agree = 100 * consensus_matrix(side)
    accuracy = 100 * np.nanmean(right[order], axis=1)
    cluster = next(iter(tables.values())).rows.cluster
    clustered = compare_all(100 * right[order].T, 0, cluster, resampling=data.resampling)
    test_caption = "Row minus column in points, the interval, and p of McNemar's exact test."
    mcnemar = _pairs_table(
        "McNemar",
        names,
        1,
        lambda i, j: f"{_gap(tests, i, j)} p {_p(tests.p[i, j])}" if tests.n[i, j] else None,
    )
    agreement = _pairs_table(
        "Agreement, % of targets",
        names,
        0,
        lambda i, j: None if np.isnan(agree[i, j]) else float(agree[i, j]),
    )
    points = PairwiseMatrix(
        diff=100 * tests.diff,
        se=np.full(tests.p.shape, np.nan),
        low=100 * tests.low,
        high=100 * tests.high,
        p=np.where(np.isnan(tests.p), 1.0, tests.p),
        n=tests.n,
    )
    board = _against_best(names, tests, accuracy, clustered)
    left = [f"Shown are the best {MOST} of {len(tables)}."] if len(tables) > MOST else []
    return StudyResult(
        name="consensus",
        title="Who is right where others are wrong",
        sentences=(_sentence(names, tests, accuracy),),
        tables=(board, replace(mcnemar, caption=test_caption), agreement),
        charts=(
            StudyChart(
                name="mcnemar",
                title="Differences of accuracy",
                chart=difference_heatmap(names, points, label="accuracy in points"),
            ),
            StudyChart(
                name="agreement",
                title="How often two methods differ",
                chart=distance_heatmap(names, 100 - agree, label="% of targets put on different sides", decimals=0),
            ),
        ),
        notes=(*NOTES, *left, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _against_best(
    names: Sequence[str], tests: McNemarMatrix, accuracy: Floats, clustered: Sequence[Comparison]
) -> StudyTable:
    columns = (
        column("accuracy", "%"),
        column("minus the best", "points, with Newcombe's 95 % interval"),
        column("p", "McNemar's exact test, two-sided, corrected for the number of methods (Holm)"),
        column("Δ, clusters", "the same difference with whole clusters resampled"),
        column("n", "targets both answered"),
    )
    rows: dict[str, tuple[CellValue, ...]] = {names[0]: (float(accuracy[0]), None, None, None, int(tests.n[0, 0]))}
    p = holm(tests.p[1:, 0])
    for i, name in enumerate(names[1:], 1):
        rows[name] = (float(accuracy[i]), _gap(tests, i, 0), _p(p[i - 1]), clustered[i], int(tests.n[i, 0]))
    return table("Accuracy", "Method", columns, rows, styles={names[0]: "reference"})


def _pairs_table(title: str, names: Sequence[str], decimals: int, cell: Callable[[int, int], CellValue]) -> StudyTable:
    """A cell for every pair of different methods; columns go by the number of their method."""
    columns = tuple(column(str(j + 1), name, decimals) for j, name in enumerate(names))
    places = range(len(names))
    rows = {f"{i + 1} {names[i]}": [None if i == j else cell(i, j) for j in places] for i in places}
    return table(title, "Method", columns, rows)


def _gap(tests: McNemarMatrix, i: int, j: int) -> str:
    ends = bracket(100 * tests.low[i, j], 100 * tests.high[i, j], 1)
    return f"{signed(100 * tests.diff[i, j], 1)} {ends}"


def _p(value: float) -> str:
    """A p-value as people write it.

    >>> _p(0.0123), _p(0.00002)
    ('0.012', '<0.001')
    """
    return number(float(value), 3) if value >= 0.001 else "<0.001"


def _sentence(names: Sequence[str], tests: McNemarMatrix, accuracy: Floats) -> str:
    beaten = int(np.sum((holm(tests.p[0, 1:]) < 0.05) & (tests.diff[0, 1:] > 0)))
    best = f"{names[0]} is right most often ({number(float(accuracy[0]), 1)} %)"
    return f"{best}, and clearly more often than {beaten} of {plural(len(names) - 1, 'other method')}."
