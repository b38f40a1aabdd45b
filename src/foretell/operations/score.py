"""Score tables of forecasts, compare forecasters, analyse errors, and plan the next comparison."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.calibration import calibration_line
from foretell.metrics.decisions import hard_score_variance
from foretell.metrics.metric import LOG_FLOOR, METRICS
from foretell.metrics.power import PowerTarget, questions_needed
from foretell.metrics.returns import Bettor, kalshi_fee, no_fee, proportional_fee
from foretell.metrics.scores import metaculus_baseline_options, peer_points
from foretell.operations.requests.scoring import (
    CompareRequest,
    ErrorsRequest,
    PlanRequest,
    ScoreRequest,
    ScoringRequest,
    TablesRequest,
)
from foretell.operations.result import Result, show_table
from foretell.operations.score_numbers import NumberScores, interval_text, score_numbers
from foretell.questions.errors import InputError
from foretell.report.comparison import comparison_study, print_comparison
from foretell.report.numbers import percent
from foretell.report.provenance import Provenance
from foretell.report.study import StudyResult
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.settings import Settings, load_settings
from foretell.scoring.breakdown import ErrorAnalysis, error_analysis
from foretell.scoring.join import TRIAL_MARK, ReadOptions, read_costs, read_table
from foretell.scoring.long_tables import RunRows, add_tables, run_rows
from foretell.scoring.score import PairComparison, ScoringOptions, compare_pair, pilot_of, prepared, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ANCHORS, ForecastTable, Labels, with_anchors
from foretell.scoring.verdict import Correction, Verdict, corrected

DIFFICULTY = "difficulty"
"""A computed column to group by: how hard a question was for all forecasters."""


# Scores.


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class OptionScore:
    """One forecaster on the questions with options that it answered completely."""

    forecaster: str
    n: int
    baseline: Interval
    """100·ln(p·k)/ln k of k options: 0 for even chances, 100 for certainty."""
    peer: Interval
    """100·(ln p − mean ln p of the others)."""


@dataclass(frozen=True, kw_only=True)
class ScoreResult(Result):
    """A leaderboard, and the table it was made from."""

    board: Scoreboard
    table: ForecastTable
    scoring: ScoringOptions
    """The options that made the board."""
    title: str = "Leaderboard"
    costs: Mapping[str, float] | None = None
    details: tuple[ScoreDetails, ...] = ()
    variance: Mapping[str, float] = field(default_factory=dict[str, float])
    """Forecaster → variance of the hard score between trials of a task, if options have payoffs."""
    options: tuple[OptionScore, ...] = ()
    """Metaculus scores of questions with options, if details were requested."""

    def to_dict(self) -> Any:
        """The board's data, and the details if they were requested."""
        more: dict[str, Any] = {"details": [asdict(one) for one in self.details]} if self.details else {}
        more |= {"options": [asdict(one) for one in self.options]} if self.options else {}
        return self.board.to_dict() | more | ({"variance": dict(self.variance)} if self.variance else {})

    def rows(self) -> list[dict[str, Any]]:
        """One row for each forecaster and group: every metric with its interval."""
        return self.board.rows()

    def to_html(self) -> str:
        """The leaderboard as a page."""
        from foretell.report.leaderboard import leaderboard_page

        return leaderboard_page(self.board, self.table, self.title, costs=self.costs, scoring=self.scoring)

    def to_markdown(self) -> str:
        """The leaderboard as Markdown."""
        from foretell.report.leaderboard import markdown_board

        return f"{markdown_board(self.board)}\n{Provenance.now(self.board.settings).to_markdown()}"

    def print(self, console: Console) -> None:
        """The leaderboard, and the details below it."""
        from foretell.report.leaderboard import print_board

        print_board(self.board, console)
        if self.variance:
            told = ", ".join(f"{name} {value:.4f}" for name, value in sorted(self.variance.items(), key=itemgetter(1)))
            show_text(console, f"Variance of the hard score between trials of a task: {told}.\n")
        if self.details:
            show_text(console, "\n")
            show_table(console, self.details, DETAIL_COLUMNS)
            show_text(console, f"{DETAIL_NOTE}\n")
        if self.options:
            show_text(console, "\n")
            show_table(console, self.options, OPTION_COLUMNS)


DETAIL_COLUMNS: Mapping[TextColumn, Callable[[ScoreDetails], str]] = {
    TextColumn(head="Forecaster", shrink=12): lambda one: one.forecaster,
    TextColumn(head="Peer", right=True): lambda one: interval_text(one.peer),
    TextColumn(head="Adjusted", right=True): lambda one: f"{one.adjusted.estimate:.3f}",
    TextColumn(head="Reliab.", right=True, drop=1): lambda one: f"{one.reliability:.3f}",
    TextColumn(head="Resol.", right=True, drop=1): lambda one: f"{one.resolution:.3f}",
    TextColumn(head="Slope", right=True, drop=2): lambda one: f"{one.slope:.2f}",
    TextColumn(head="Intercept", right=True, drop=3): lambda one: f"{one.intercept:+.2f}",
}
OPTION_COLUMNS: Mapping[TextColumn, Callable[[OptionScore], str]] = {
    TextColumn(head="Questions with options", shrink=16): lambda one: one.forecaster,
    TextColumn(head="n", right=True, drop=1): lambda one: str(one.n),
    TextColumn(head="Metaculus baseline", right=True): lambda one: interval_text(one.baseline),
    TextColumn(head="Metaculus peer", right=True): lambda one: interval_text(one.peer),
}
DETAIL_NOTE = (
    "Peer: Metaculus peer score, above 0 beats the others. Adjusted: Brier score less the\n"
    "difficulty of the questions. Reliability and resolution: Murphy's parts of the\n"
    "Brier score. Slope below 1: overconfident."
)


def score(request: ScoreRequest, settings: Settings | None = None) -> ScoreResult | NumberScores:
    """Score a table of forecasts against a table of outcomes: probabilities, or quantiles and samples of numbers."""
    request, notes = with_runs(_with_sources(request), settings)
    if (numbers := score_numbers(request)) is not None:
        return numbers
    table = _table(request, notes)
    if DIFFICULTY in request.by and DIFFICULTY not in table.targets.groups:
        table = with_difficulty(table)
    every = tuple(METRICS) if request.metrics == "all" else ()
    options = replace(scoring_options(request), anchors=request.anchors, metrics=every)
    board = score_table(table, options)
    costs = None if request.costs is None else read_costs(request.costs, table.forecasters)
    named = request.forecasts if isinstance(request.forecasts, str | Path) else None
    return ScoreResult(
        board=board,
        table=table,
        scoring=options,
        title=request.title or (f"Scores of {Path(named).name}" if named else "Leaderboard"),
        costs=costs,
        details=score_details(table, board) if request.metrics == "all" else (),
        options=option_scores(table, options.resampling) if request.metrics == "all" else (),
        variance=trial_variance(request) if table.targets.options.any() else {},
    )


def _with_sources(request: ScoreRequest) -> ScoreRequest:
    """Put positional files and runs where the options would put them."""
    if not request.sources:
        return request
    files = [Path(one) for one in request.sources if Path(one).suffix or Path(one).exists()]
    runs = tuple(one for one in request.sources if Path(one) not in files)
    if files and request.forecasts is not None:
        problem = f"{files[0]} is given beside --forecasts"
        raise InputError(problem, column="--forecasts", hint="give both files as arguments, or outcomes with -o")
    forecasts = request.forecasts if not files else files[0] if len(files) == 1 else {str(one): one for one in files}
    return request.model_copy(update={"sources": (), "forecasts": forecasts, "runs": (*runs, *request.runs)})


def trial_variance(request: TablesRequest) -> dict[str, float]:
    """Forecaster with several trials → variance of the hard score between them, averaged over tasks."""
    table = read_table(request.forecasts, request.outcomes, replace(read_options(request), trials="separate"))
    scores: dict[str, tuple[list[Floats], list[Ints]]] = {}
    for name in table.forecasters:
        rows = table.rows_of(name)
        targets = table.target[rows]
        hard, task = table.decisions(targets, table.p[rows]).hard, table.targets.askings[targets]
        kept = np.flatnonzero(np.isfinite(hard))
        tasks, first = np.unique(task[kept], return_index=True)
        found = scores.setdefault(name.rpartition(TRIAL_MARK)[0] or name, ([], []))
        found[0].append(hard[kept[first]])
        found[1].append(tasks)
    several = {name: found for name, found in scores.items() if len(found[0]) > 1}
    return {
        name: hard_score_variance(np.concatenate(hard), np.concatenate(task))
        for name, (hard, task) in several.items()
        if len(np.concatenate(task)) > len(np.unique(np.concatenate(task)))
    }


def scoring_options(request: ScoringRequest) -> ScoringOptions:
    """The request's options for the scoring engine."""
    return ScoringOptions(
        by=request.by,
        metric=request.metric,
        reference=request.reference,
        cluster=request.cluster,
        missing=request.missing,
        bettor=Bettor(gamma=request.gamma, fee=_fee(request.fee)),
        resampling=Resampling(draws=request.draws, seed=request.seed, level=request.level, interval=request.interval),
        matters=request.matters,
    )


Scoring = TypeVar("Scoring", ScoreRequest, CompareRequest, PlanRequest)


def with_runs(request: Scoring, settings: Settings | None = None) -> tuple[Scoring, tuple[str, ...]]:
    """Add the rows of the request's runs to its tables; also returns how the user's own tables were understood."""
    if not request.runs and not isinstance(request.forecasts, Mapping):
        if request.forecasts is None:
            raise InputError("nothing is given to score", column="--forecasts", hint="-f FILE, or --run RUN")
        return request, ()
    found = RunRows(forecasts=[], combined=[], outcomes=[], names=(), texts={})
    if request.runs:
        # With tables of one's own an outcome may stand there.
        alone = request.outcomes is None and request.forecasts is None
        found = run_rows(settings or load_settings(), request.runs, decided=alone)
    found = add_tables(found, request.forecasts, request.outcomes, request.columns)
    tables = {"forecasts": [*found.forecasts, *found.combined], "outcomes": found.outcomes}
    return request.model_copy(update={**tables, "runs": (), "drop_unknown": True, "columns": {}}), found.notes


def _table(request: TablesRequest, notes: Sequence[str] = ()) -> ForecastTable:
    table = read_table(request.forecasts, request.outcomes, read_options(request))
    return replace(table, notes=(*notes, *table.notes))


def read_options(request: TablesRequest) -> ReadOptions:
    """The request's options for reading tables."""
    return ReadOptions(
        trials=request.combine,
        weights=request.weights,
        drop_unknown=request.drop_unknown,
        columns=request.columns,
    )


def _fee(text: str) -> Any:
    if text in ("none", "kalshi"):
        return no_fee if text == "none" else kalshi_fee
    try:
        return proportional_fee(float(text))
    except ValueError:
        raise InputError(f"{text} is neither none, kalshi nor a rate such as 0.02", column="--fee") from None


# Difficulty, and the numbers that need everybody's forecasts at once.


def with_difficulty(table: ForecastTable) -> ForecastTable:
    """Add a column with easy, medium or hard, each a third of the targets."""
    gamma = table.difficulty
    low, high = np.nanquantile(gamma, [1 / 3, 2 / 3])
    codes = np.where(np.isnan(gamma), 3, (gamma > low).astype(int) + (gamma > high)).astype(np.int64)
    labels = Labels(codes=codes, names=("easy", "medium", "hard", "unanswered"))
    return replace(table, targets=replace(table.targets, groups={**table.targets.groups, DIFFICULTY: labels}))


def score_details(table: ForecastTable, board: Scoreboard) -> tuple[ScoreDetails, ...]:
    """The board's own peer and adjusted Brier scores and Murphy's parts, and the recalibration line."""
    found: list[ScoreDetails] = []
    for row in board.sections()[0].rows:
        if row.anchor:
            continue
        p, metrics = table.p_of(row.name), row.score.metrics
        answered = np.isfinite(p)
        line = calibration_line(p[answered], table.targets.outcome[answered])
        found.append(
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
    return tuple(sorted(found, key=lambda one: -one.peer.estimate))


# Metaculus scores of questions with options of which one came true.

SUM_OFF = 0.005
"""How far the probabilities of options may be from one; dates of one question rarely add up to that."""


def option_scores(table: ForecastTable, resampling: Resampling) -> tuple[OptionScore, ...]:
    """Baseline and peer scores by forecaster, best first; none if no question has options of which one came true."""
    targets = table.targets
    _, task = np.unique(targets.askings, return_inverse=True)
    size, happened = np.bincount(task), np.bincount(task, targets.outcome)
    shared = np.bincount(task, (targets.outcome > 0) & (targets.outcome < 1))
    tasks = np.flatnonzero((size > 1) & (happened == 1) & (shared == 0))
    if not len(tasks):
        return ()
    place = _places(task, tasks, int(size[tasks].max()))
    given = [np.where(place >= 0, table.p_of(name)[place], np.nan) for name in table.forecasters]
    whole = np.stack([((~np.isnan(p)) == (place >= 0)).all(axis=1) for p in given])
    adds_up = np.stack([np.abs(np.nansum(p, axis=1) - 1) <= SUM_OFF for p in given])
    kept = whole.any(axis=0) & (adds_up | ~whole).all(axis=0)
    if not kept.any():
        return ()
    place = place[kept]
    true = np.argmax(np.where(place >= 0, targets.outcome[place], 0), axis=1)
    chances = np.stack([_distributions(p[kept], rows[kept]) for p, rows in zip(given, whole, strict=True)])
    answered = whole[:, kept]
    happened = np.take_along_axis(chances, np.broadcast_to(true[None, :, None], (*answered.shape, 1)), axis=2)[:, :, 0]
    peer = peer_points(happened)
    cluster = targets.question.codes[place[:, 0]]
    found = [
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
    return tuple(sorted(found, key=lambda one: -one.baseline.estimate))


def _places(task: Ints, tasks: Ints, width: int) -> Ints:
    """The targets of every task, padded with −1."""
    place = np.full((len(tasks), width), -1, np.int64)
    order = np.argsort(task, kind="stable")
    starts = np.searchsorted(task[order], tasks)
    ends = np.searchsorted(task[order], tasks, side="right")
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        place[row, : end - start] = order[start:end]
    return place


def _distributions(given: Floats, whole: Bools) -> Floats:
    """Positive probabilities that add up to one; NaN for tasks that were not answered completely."""
    chances = np.maximum(given, LOG_FLOOR)
    chances = chances / np.maximum(np.nansum(chances, axis=1, keepdims=True), LOG_FLOOR)
    return np.where(whole[:, None], chances, np.nan)


# Comparisons.


@dataclass(frozen=True, kw_only=True)
class CompareResult(Result):
    """Every forecaster against one of them, with p-values corrected for the number of comparisons."""

    reference: str
    table: ForecastTable
    pairs: tuple[PairComparison, ...]
    correction: Correction

    def to_dict(self) -> Any:
        """The comparison of two forecasters, or a list of comparisons."""
        notes = {"notes": list(self.table.notes)}
        if len(self.pairs) == 1:
            return self.pairs[0].to_dict() | notes
        pairs = [pair.to_dict() for pair in self.pairs]
        return {"reference": self.reference, "correction": self.correction, "pairs": pairs, **notes}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each pair and group; p-values are corrected for the number of pairs within each group."""
        return [row for pair in self.pairs for row in pair.rows()]

    def study(self) -> StudyResult:
        """The comparison with its tables and charts."""
        return comparison_study(self.table, self.pairs)

    def to_html(self) -> str:
        """The comparison as a page."""
        return self.study().to_html()

    def to_markdown(self) -> str:
        """The comparison as Markdown."""
        return self.study().to_markdown()

    def print(self, console: Console) -> None:
        """The verdicts, and a table with a row for each pair and group."""
        print_comparison(self.pairs, console, self.table.notes)


def compare(request: CompareRequest, settings: Settings | None = None) -> CompareResult:
    """Compare forecasters with a reference on the targets that both answered."""
    names = list(dict.fromkeys(request.forecasters))
    reference = request.reference or names[-1]
    others = [name for name in names if name != reference]
    if not others:
        raise InputError("there is nobody to compare with", hint="name two forecasters or more")
    options, anchors = scoring_options(request), bool({*names, reference} & set(ANCHORS))
    table = prepared(_table(*with_runs(request, settings)), options, anchors=anchors)
    for name in (reference, *others):
        table.require(name)
    pairs = [compare_pair(table, name, reference, options) for name in others]
    return CompareResult(
        reference=reference,
        table=table,
        pairs=tuple(correct_together(pairs, request.correction)),
        correction=request.correction,
    )


def correct_together(pairs: Sequence[PairComparison], correction: Correction) -> list[PairComparison]:
    """Correct the p-values of pairs that were compared together, group by group."""
    if len(pairs) < 2:
        return list(pairs)
    groups: dict[tuple[tuple[str, str], ...], list[Verdict]] = {}
    for pair in pairs:
        for verdict in pair.verdicts:
            groups.setdefault(tuple(verdict.group.items()), []).append(verdict)
    found = {
        (verdict.first, group): verdict
        for group, verdicts in groups.items()
        for verdict in corrected(verdicts, correction)
    }
    return [
        replace(pair, verdicts=tuple(found[pair.first, tuple(one.group.items())] for one in pair.verdicts))
        for pair in pairs
    ]


# Errors of one forecaster.


@dataclass(frozen=True, kw_only=True)
class ErrorsResult(Result):
    """Where a forecaster does well and badly."""

    analysis: ErrorAnalysis
    difficulty: Mapping[tuple[str, str], float]
    """(question, target) → difficulty for all forecasters."""
    notes: tuple[str, ...] = ()
    """How the table was read, and what was left out."""

    def to_dict(self) -> Any:
        """Scores by group, the hardest and easiest targets, and the worst bins."""
        found = self.analysis
        return {
            "forecaster": found.forecaster,
            "reference": found.reference,
            "metric": found.scoring.metric,
            "overall": None if found.overall is None else asdict(found.overall),
            "groups": self.rows(),
            "hardest": [self._case(one) for one in found.hardest],
            "easiest": [self._case(one) for one in found.easiest],
            "calibration": [asdict(one) for one in found.worst_bins],
        }

    def _case(self, case: Any) -> dict[str, Any]:
        return asdict(case) | {"difficulty": self.difficulty.get((case.question, case.target))}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each group of each column."""
        who = self.analysis.forecaster
        return [
            {
                "column": part.column,
                "group": group,
                "n": part.answered[who][i],
                "base_rate": part.base_rate[i],
                "score": None if found is None else found.estimate,
                "low": None if found is None else found.low,
                "high": None if found is None else found.high,
            }
            for part in self.analysis.breakdowns
            for i, (group, found) in enumerate(zip(part.groups, part.scores[who], strict=True))
        ]

    def to_html(self) -> str:
        """The analysis as a page."""
        from foretell.report.leaderboard import error_analysis_page

        return error_analysis_page(self.analysis)

    def print(self, console: Console) -> None:
        """Print a sentence, and the targets with the worst scores."""
        from rich.text import Text

        from foretell.report.leaderboard import error_analysis_lead

        console.print(Text(error_analysis_lead(self.analysis), style="bold"))
        show_text(console, "\n")
        columns: dict[TextColumn, Callable[[Any], object]] = {
            TextColumn(head="Most wrong about", shrink=24): lambda one: one.title or one.question,
            TextColumn(head="target", shrink=6, drop=2): lambda one: one.target,
            TextColumn(head="p", right=True): lambda one: f"{one.p:.2f}",
            TextColumn(head="came out", right=True): lambda one: f"{one.outcome:g}",
            TextColumn(head="Brier", right=True): lambda one: f"{one.brier:.3f}",
            TextColumn(head="difficulty", right=True, drop=1): lambda one: (
                f"{self.difficulty.get((one.question, one.target), float('nan')):.3f}"
            ),
        }
        show_table(console, self.analysis.hardest, columns)
        console.print(Text("\nScores by group and figures: --out FILE.html", style="dim"))


def errors(request: ErrorsRequest) -> ErrorsResult:
    """Analyse a forecaster's errors by source, horizon, round and other columns."""
    plain = _table(request)
    table = with_anchors(plain)
    for name in filter(None, (request.forecaster, request.reference)):
        table.require(name)
    scoring = ScoringOptions(metric=request.metric, cluster=request.cluster)
    targets, gamma = plain.targets, plain.difficulty
    return ErrorsResult(
        analysis=error_analysis(table, request.forecaster, request.reference, scoring=scoring),
        difficulty={
            (targets.question.names[q], targets.target.names[t]): float(hard)
            for q, t, hard in zip(targets.question.codes, targets.target.codes, gamma, strict=True)
        },
        notes=plain.notes,
    )


# How many questions the next comparison needs.


@dataclass(frozen=True, kw_only=True)
class PlanResult(Result):
    """The number of targets needed, and its basis."""

    targets: int
    gain: float
    power: float
    alpha: float
    sd: float
    index: float
    """The Brier index around which the gain is expected."""
    design_effect: float
    source: str

    def __str__(self) -> str:
        points = "1 point" if abs(self.gain) == 1 else f"{abs(self.gain):g} points"
        return (
            f"You need {self.targets:,} targets to detect a gain of {points} of Brier index around {self.index:.1f} "
            f"with {percent(self.power)} probability (two-sided test, alpha {self.alpha:g}).\n"
            f"Paired Brier differences: standard deviation {self.sd:.3f}, design effect {self.design_effect:.2f} "
            f"({self.source})."
        )


def plan(request: PlanRequest, settings: Settings | None = None) -> PlanResult:
    """Compute how many targets are needed to detect a gain."""
    sd, inflation, level, source = _spread(request, settings)
    index, gain = level if request.index is None else request.index, abs(request.gain)
    if not gain:
        raise InputError("no number of targets shows a gain of nothing", column="--gain", hint="e.g. --gain 1")
    if index + gain / 2 > PERFECT_INDEX:
        hint = f"around {index:.1f}, at most {2 * (PERFECT_INDEX - index):.1f}"
        raise InputError(f"a Brier index cannot exceed {PERFECT_INDEX:g}", column="--gain", hint=hint)
    # From index I − g/2 to I + g/2 the Brier score (1 − I/100)² falls by exactly g·(1 − I/100)/50.
    brier_gain = gain * (1 - index / 100) / 50
    needed = questions_needed(
        brier_gain, sd, PowerTarget(power=request.power, alpha=request.alpha), inflation=inflation
    )
    aim = {"gain": request.gain, "power": request.power, "alpha": request.alpha}
    return PlanResult(targets=needed, sd=sd, index=index, design_effect=inflation, source=source, **aim)


USUAL_INDEX = 70.0
"""Brier index to plan with if there is no pilot."""
PERFECT_INDEX = 100.0


def _spread(request: PlanRequest, settings: Settings | None) -> tuple[float, float, float, str]:
    """Standard deviation, design effect and Brier index to plan with, and where they come from."""
    if request.sd is not None:
        if request.pilot or request.forecasts is not None or request.runs:
            raise InputError("is the spread, so a pilot has no effect", column="--sd", hint="leave one of them out")
        return request.sd, 1.0, USUAL_INDEX, "as given; targets are assumed independent"
    if len(request.pilot) != 2 or (request.forecasts is None and not request.runs):
        hint = "give --sd, or two forecasters FIRST SECOND with -f and -o, or with --run"
        raise InputError("the spread is unknown", hint=hint)
    first, second = request.pilot
    given, _ = with_runs(request, settings)
    reading = ReadOptions(drop_unknown=given.drop_unknown, columns=given.columns)
    table = read_table(given.forecasts, given.outcomes, reading)
    for name in (first, second):
        table.require(name)
    found = pilot_of(table, first, second)
    if found is None:
        problem = f"{first} and {second} never differ, or share fewer than two clusters"
        raise InputError(f"{problem}: there is no spread to plan from")
    source = f"from {found.n:,} targets in {found.n_clusters} clusters"
    return found.sd, max(1.0, found.inflation), found.index, source
