"""Score forecasts against outcomes, and analyse the errors of a forecaster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.calibration import calibration_line
from foretell.metrics.decisions import hard_score_variance
from foretell.metrics.metric import LOG_FLOOR, METRICS
from foretell.metrics.returns import Bettor, kalshi_fee, no_fee, proportional_fee
from foretell.metrics.scores import metaculus_baseline_options, peer_points
from foretell.number_text import number, percent, signed
from foretell.operations.requests.scoring import MeasureRequest, ScoreRequest
from foretell.operations.score_numbers import NumberScores, score_numbers
from foretell.questions.errors import InputError
from foretell.report.numbers import estimate
from foretell.report.provenance import Provenance
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.scoring.added_tables import RunRows, add_tables, named_tables
from foretell.scoring.breakdown import ErrorAnalysis, error_analysis
from foretell.scoring.join import TRIAL_MARK, ReadOptions, read_table
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.score import ScoringOptions, prepared, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable, with_computed_columns
from foretell.scoring.table_input import names_a_file

if TYPE_CHECKING:
    from foretell.operations.answers import AnswerScores
    from foretell.runs.settings import Settings

# Scores.


@frozen
class ScoreDetails:
    """Further scores of one forecaster."""

    forecaster: str
    peer: Interval
    """Metaculus peer score: above 0 if it beats the others on the same targets."""
    adjusted: Interval
    """Brier score minus the difficulty of the questions; always 0.5 gets 0.25."""
    reliability: float
    resolution: float
    uncertainty: float
    slope: float
    """Slope of the recalibration line on the log-odds scale; below 1 means overconfident."""
    intercept: float


@frozen
class OptionScore:
    """One forecaster on the questions with options that it answered completely."""

    forecaster: str
    n: int
    baseline: Interval
    """100·ln(p·k)/ln k of k options: 0 for even chances, 100 for certainty."""
    peer: Interval
    """100·(ln p − mean ln p of the others)."""


@frozen
class ScoreResult(Result):
    """A leaderboard, and the table it was computed from."""

    board: Scoreboard
    table: ForecastTable
    scoring: ScoringOptions
    """The options of the leaderboard."""
    title: str = "Leaderboard"
    details: tuple[ScoreDetails, ...] = ()
    variance: Mapping[str, float] = field(default_factory=dict[str, float])
    """Forecaster → variance of the hard score between trials of a task, if options have payoffs."""
    options: tuple[OptionScore, ...] = ()
    """Metaculus scores of questions with options, if details were requested."""

    def to_dict(self) -> Any:
        """Return the board's data, and the details if they were requested."""
        more: dict[str, Any] = {"details": [asdict(detail) for detail in self.details]} if self.details else {}
        more |= {"options": [asdict(option) for option in self.options]} if self.options else {}
        return self.board.to_dict() | more | ({"variance": dict(self.variance)} if self.variance else {})

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each forecaster and group: every metric with its interval."""
        return self.board.rows()

    def to_html(self) -> str:
        """Return the leaderboard as a page."""
        from foretell.report.leaderboard import leaderboard_page

        return leaderboard_page(self.board, self.table, self.title, scoring=self.scoring)

    def to_markdown(self) -> str:
        """Return the leaderboard as Markdown."""
        from foretell.report.leaderboard import markdown_board

        return f"{markdown_board(self.board)}\n{Provenance.now(self.board.settings).to_markdown()}"

    def print(self, console: Console) -> None:
        """Print the leaderboard, and the details below it."""
        from foretell.report.leaderboard import print_board

        print_board(self.board, console)
        if self.variance:
            text = ", ".join(f"{name} {value:.4f}" for name, value in sorted(self.variance.items(), key=itemgetter(1)))
            show_text(console, f"Variance of the hard score between trials of a task: {text}.\n")
        if self.details:
            show_text(console, "\n")
            show_table(console, self.details, DETAIL_COLUMNS)
            show_text(console, f"{DETAIL_NOTE}\n")
        if self.options:
            show_text(console, "\n")
            show_table(console, self.options, OPTION_COLUMNS)


DETAIL_COLUMNS: Mapping[TextColumn, Callable[[ScoreDetails], str]] = {
    TextColumn(head="Forecaster", shrink=12): lambda row: row.forecaster,
    TextColumn(head="Peer", right=True): lambda row: estimate(row.peer, 1),
    TextColumn(head="Adjusted", right=True): lambda row: number(row.adjusted.estimate, 3),
    TextColumn(head="Reliab.", right=True, drop=1): lambda row: f"{row.reliability:.3f}",
    TextColumn(head="Resol.", right=True, drop=1): lambda row: f"{row.resolution:.3f}",
    TextColumn(head="Slope", right=True, drop=2): lambda row: number(row.slope, 2),
    TextColumn(head="Intercept", right=True, drop=3): lambda row: signed(row.intercept, 2),
}
OPTION_COLUMNS: Mapping[TextColumn, Callable[[OptionScore], str]] = {
    TextColumn(head="Questions with options", shrink=16): lambda row: row.forecaster,
    TextColumn(head="n", right=True, drop=1): lambda row: str(row.n),
    TextColumn(head="Metaculus baseline", right=True): lambda row: estimate(row.baseline, 1),
    TextColumn(head="Metaculus peer", right=True): lambda row: estimate(row.peer, 1),
}
DETAIL_NOTE = (
    "Peer: Metaculus peer score, above 0 beats the others. Adjusted: Brier score less the\n"
    "difficulty of the questions. Reliability and resolution: Murphy's parts of the\n"
    "Brier score. Slope below 1: overconfident."
)


def score(
    request: ScoreRequest, settings: "Settings | None" = None
) -> "ScoreResult | ErrorsResult | NumberScores | AnswerScores":
    """Score forecasts against outcomes, or analyse the errors of one forecaster.

    Returns:
        A leaderboard; with `errors`, an analysis; for quantiles and samples of numbers, and for a run with free-form
            answers that is scored without options, their own scores.

    Raises:
        InputError: If a table cannot be read, or an option has no effect on the request.
    """
    if (answers := _answers_of_run(request, settings)) is not None:
        return answers
    tables = gather_tables(request, request.sources, settings)
    if (numbers := score_numbers(request, tables.forecasts, tables.outcomes)) is not None:
        return numbers
    reading = {"trials": request.combine, "weights": request.weights}
    table, options = tables.read(**reading), score_options(request)
    if request.errors is not None:
        request.refuse_set(("metrics",), "has no effect with --errors")
        return analyse_errors(table, request.errors, options)
    table = with_computed_columns(table, request.by)
    all_metrics = request.metrics == "all"
    options = replace(options, metrics=tuple(METRICS) if all_metrics else ())
    board = score_table(table, options)
    return ScoreResult(
        board=board,
        table=table,
        scoring=options,
        title=tables.title,
        details=score_details(table, board) if all_metrics else (),
        options=option_scores(table, options.resampling) if all_metrics else (),
        variance=trial_variance(tables.read(**reading | {"trials": "separate"})) if table.targets.options.any() else {},
    )


def _answers_of_run(request: ScoreRequest, settings: "Settings | None") -> "AnswerScores | None":
    """Return the scores of free-form answers; None unless a request names nothing but a run that has some."""
    if (
        len(request.sources) != 1
        or names_a_file(request.sources[0])
        or request != ScoreRequest(sources=request.sources)
    ):
        return None
    # Imported here: files are scored without the store of runs.
    from foretell.operations.answers import has_answers, score_answers

    (run,) = request.sources
    return score_answers(run, settings=settings) if has_answers(run, settings) else None


# The tables and runs of a request.


@frozen
class Tables:
    """Forecasts and outcomes from files, rows and stored runs, as one pair of tables."""

    forecasts: Any
    outcomes: Any
    columns: ColumnNames = field(default_factory=dict[str, str])
    runs: tuple[str, ...] = ()
    """The names of the runs' forecasters, in the order of the runs."""
    notes: tuple[str, ...] = ()
    """How the user's own tables were read."""

    @property
    def title(self) -> str:
        """A title for the scores."""
        named = isinstance(self.forecasts, str | Path)
        return f"Scores of {Path(self.forecasts).name}" if named else "Leaderboard"

    def read(self, **options: Any) -> ForecastTable:
        """Join both tables; `options` are fields of `ReadOptions`."""
        table = read_table(self.forecasts, self.outcomes, ReadOptions(columns=self.columns, **options))
        return replace(table, notes=(*self.notes, *table.notes))


def gather_tables(request: MeasureRequest, sources: Sequence[str], settings: "Settings | None" = None) -> Tables:
    """Combine the files and runs in `sources` with the tables of the request.

    Raises:
        InputError: If there are none, or if one of them cannot be read.
    """
    files = {source: Path(source) for source in sources if names_a_file(source)}
    runs = [source for source in sources if source not in files]
    own: Any = request.forecasts
    if own is None and not files and not runs:
        raise InputError("no forecasts are given", column="--forecasts", hint="name a file of forecasts or a run")
    if not runs and not isinstance(own, Mapping) and (own is not None) + len(files) == 1:
        forecasts = own if own is not None else next(iter(files.values()))
        return Tables(forecasts=forecasts, outcomes=request.outcomes, columns=request.columns)
    tables = RunRows(forecasts=[], combined=[], outcomes=[], names=(), texts={})
    if runs:
        # Imported here: files are scored without the store of runs.
        from foretell.runs.settings import load_settings
        from foretell.scoring.run_scores import run_rows

        # With the user's own tables, outcomes may be in those.
        alone = request.outcomes is None and own is None and not files
        tables = run_rows(settings or load_settings(), runs, decided=alone)
    tables = add_tables(tables, {**named_tables(own), **files}, request.outcomes, request.columns)
    return Tables(
        forecasts=[*tables.forecasts, *tables.combined], outcomes=tables.outcomes, runs=tables.names, notes=tables.notes
    )


def trial_variance(table: ForecastTable) -> dict[str, float]:
    """Map forecaster with several trials → variance of the hard score between them, averaged over tasks.

    Every trial is a forecaster of its own in the table.
    """
    scores: dict[str, tuple[list[Floats], list[Ints]]] = {}
    for name in table.forecasters:
        rows = table.rows_of(name)
        targets = table.target[rows]
        hard, task = table.decisions(targets, table.p[rows]).hard, table.targets.askings[targets]
        finite = np.flatnonzero(np.isfinite(hard))
        tasks, first = np.unique(task[finite], return_index=True)
        values = scores.setdefault(name.rpartition(TRIAL_MARK)[0] or name, ([], []))
        values[0].append(hard[finite[first]])
        values[1].append(tasks)
    several = {name: values for name, values in scores.items() if len(values[0]) > 1}
    return {
        name: hard_score_variance(np.concatenate(hard), np.concatenate(task))
        for name, (hard, task) in several.items()
        if len(np.concatenate(task)) > len(np.unique(np.concatenate(task)))
    }


def measure_options(request: MeasureRequest) -> ScoringOptions:
    """Return the options for the scoring engine that all scoring commands share."""
    return ScoringOptions(
        by=request.by,
        metric=request.metric,
        reference=request.reference,
        cluster=request.bootstrap.cluster,
        missing=request.missing,
        resampling=request.bootstrap.resampling,
    )


def score_options(request: ScoreRequest) -> ScoringOptions:
    """Return the request's options for the scoring engine."""
    return replace(measure_options(request), bettor=Bettor(gamma=request.gamma, fee=_fee(request.fee)))


def _fee(text: str) -> Any:
    if text in ("none", "kalshi"):
        return no_fee if text == "none" else kalshi_fee
    try:
        return proportional_fee(float(text))
    except ValueError:
        raise InputError(f"{text} is neither none, kalshi nor a rate such as 0.02", column="--fee") from None


# Scores that need the forecasts of all forecasters.


def score_details(table: ForecastTable, board: Scoreboard) -> tuple[ScoreDetails, ...]:
    """Return the board's own peer and adjusted Brier scores and Murphy's parts, and the recalibration line."""
    details: list[ScoreDetails] = []
    for row in board.sections()[0].rows:
        if row.baseline:
            continue
        p, metrics = table.p_of(row.name), row.score.metrics
        answered = np.isfinite(p)
        line = calibration_line(p[answered], table.targets.outcome[answered])
        details.append(
            ScoreDetails(
                forecaster=row.name,
                peer=metrics["peer"],
                adjusted=metrics["adjusted_brier"],
                reliability=metrics["reliability"].estimate,
                resolution=metrics["resolution"].estimate,
                uncertainty=metrics["uncertainty"].estimate,
                slope=line.slope,
                intercept=line.intercept,
            )
        )
    return tuple(sorted(details, key=lambda item: -item.peer.estimate))


# Metaculus scores of questions with options of which one came true.

SUM_OFF = 0.005
"""How far the sum of the probabilities of options may be from 1."""


def option_scores(table: ForecastTable, resampling: Resampling) -> tuple[OptionScore, ...]:
    """Return baseline and peer scores by forecaster, best first; empty if no question has exactly one true option."""
    targets = table.targets
    _, task = np.unique(targets.askings, return_inverse=True)
    size, happened = np.bincount(task), np.bincount(task, targets.outcome)
    shared = np.bincount(task, (targets.outcome > 0) & (targets.outcome < 1))
    tasks = np.flatnonzero((size > 1) & (happened == 1) & (shared == 0))
    if not len(tasks):
        return ()
    place = _places(task, tasks, int(size[tasks].max()))
    probabilities = [np.where(place >= 0, table.p_of(name)[place], np.nan) for name in table.forecasters]
    whole = np.stack([((~np.isnan(p)) == (place >= 0)).all(axis=1) for p in probabilities])
    adds_up = np.stack([np.abs(np.nansum(p, axis=1) - 1) <= SUM_OFF for p in probabilities])
    used = whole.any(axis=0) & (adds_up | ~whole).all(axis=0)
    if not used.any():
        return ()
    place = place[used]
    true = np.argmax(np.where(place >= 0, targets.outcome[place], 0), axis=1)
    chances = np.stack([_distributions(p[used], rows[used]) for p, rows in zip(probabilities, whole, strict=True)])
    answered = whole[:, used]
    happened = np.take_along_axis(chances, np.broadcast_to(true[None, :, None], (*answered.shape, 1)), axis=2)[:, :, 0]
    peer = peer_points(happened)
    cluster = targets.question.codes[place[:, 0]]
    scores = [
        OptionScore(
            forecaster=name,
            n=int(rows.sum()),
            baseline=bootstrap_score(
                metaculus_baseline_options(p[rows], true[rows]), cluster[rows], resampling=resampling
            ),
            peer=bootstrap_score(points[rows], cluster[rows], resampling=resampling),
        )
        for name, p, points, rows in zip(table.forecasters, chances, peer, answered, strict=True)
        if rows.any()
    ]
    return tuple(sorted(scores, key=lambda item: -item.baseline.estimate))


def _places(task: Ints, tasks: Ints, width: int) -> Ints:
    """Return the targets of every task, padded with −1."""
    place = np.full((len(tasks), width), -1, np.int64)
    order = np.argsort(task, kind="stable")
    starts = np.searchsorted(task[order], tasks)
    ends = np.searchsorted(task[order], tasks, side="right")
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        place[row, : end - start] = order[start:end]
    return place


def _distributions(p: Floats, whole: Bools) -> Floats:
    """Return positive probabilities that add up to one; NaN for tasks that were not answered completely."""
    chances = np.maximum(p, LOG_FLOOR)
    chances = chances / np.maximum(np.nansum(chances, axis=1, keepdims=True), LOG_FLOOR)
    return np.where(whole[:, None], chances, np.nan)


# Errors of one forecaster.


@frozen
class ErrorsResult(Result):
    """Where a forecaster does well and badly."""

    analysis: ErrorAnalysis
    difficulty: Mapping[tuple[str, str], float]
    """(question, target) → difficulty for all forecasters."""
    notes: tuple[str, ...] = ()
    """How the table was read, and what was left out."""

    def to_dict(self) -> Any:
        """Return scores by group, the hardest and easiest targets, and the worst bins."""
        analysis = self.analysis
        return {
            "forecaster": analysis.forecaster,
            "reference": analysis.reference,
            "metric": analysis.scoring.metric,
            "overall": None if analysis.overall is None else asdict(analysis.overall),
            "groups": self.rows(),
            "hardest": [self._case(case) for case in analysis.hardest],
            "easiest": [self._case(case) for case in analysis.easiest],
            "calibration": [asdict(worst_bin) for worst_bin in analysis.worst_bins],
        }

    def _case(self, case: Any) -> dict[str, Any]:
        return asdict(case) | {"difficulty": self.difficulty.get((case.question, case.target))}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each group of each column."""
        who = self.analysis.forecaster
        return [
            {
                "column": part.column,
                "group": group,
                "n": part.answered[who][i],
                "base_rate": part.base_rate[i],
                "score": None if score is None else score.estimate,
                "low": None if score is None else score.low,
                "high": None if score is None else score.high,
            }
            for part in self.analysis.breakdowns
            for i, (group, score) in enumerate(zip(part.groups, part.scores[who], strict=True))
        ]

    def to_html(self) -> str:
        """Return the analysis as a page."""
        from foretell.report.leaderboard import error_analysis_page

        return error_analysis_page(self.analysis)

    def to_markdown(self) -> str:
        """Return the analysis as Markdown."""
        from foretell.report.leaderboard import markdown_errors

        return markdown_errors(self.analysis)

    def print(self, console: Console) -> None:
        """Print a sentence, and the targets with the worst scores."""
        from rich.text import Text

        from foretell.report.leaderboard import error_analysis_lead

        console.print(Text(error_analysis_lead(self.analysis), style="bold"))
        show_text(console, "\n")
        columns: dict[TextColumn, Callable[[Any], object]] = {
            TextColumn(head="Most wrong about", shrink=24): lambda case: case.title or case.question,
            TextColumn(head="target", shrink=6, drop=2): lambda case: case.target,
            TextColumn(head="p", right=True): lambda case: percent(case.p),
            TextColumn(head="came out", right=True): lambda case: f"{case.outcome:g}",
            TextColumn(head="Brier", right=True): lambda case: f"{case.brier:.3f}",
            TextColumn(head="difficulty", right=True, drop=1): lambda case: (
                f"{self.difficulty.get((case.question, case.target), float('nan')):.3f}"
            ),
        }
        show_table(console, self.analysis.hardest, columns)
        console.print(Text("\nScores by group and figures: --out FILE.html", style="dim"))


def analyse_errors(table: ForecastTable, forecaster: str, scoring: ScoringOptions) -> ErrorsResult:
    """Analyse a forecaster's errors by the columns of `scoring.by`, or by source, horizon, round and other columns."""
    whole = prepared(table, scoring, baselines=True)
    targets, gamma = table.targets, table.difficulty
    return ErrorsResult(
        analysis=error_analysis(whole, forecaster, scoring.reference, scoring=scoring),
        difficulty={
            (targets.question.names[q], targets.target.names[t]): float(hard)
            for q, t, hard in zip(targets.question.codes, targets.target.codes, gamma, strict=True)
        },
        notes=whole.notes,
    )
