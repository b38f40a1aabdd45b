"""Thresholds that call a claim True or False: chosen on validation rows, judged on test rows, applied to new ones."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import McNemarTest, mcnemar
from foretell.metrics.decisions import (
    DEFAULT_THRESHOLD,
    Criterion,
    ThresholdReport,
    best_threshold,
    clear_answers,
    confusion_columns,
    score_counts,
    score_threshold,
)
from foretell.metrics.scores import right_side
from foretell.number_text import bracket, number, percent, plural, signed
from foretell.operations.requests.scoring import CalibrateApplyRequest, CalibrateFitRequest, ThresholdSettings
from foretell.questions.codec import parse_json
from foretell.questions.errors import InputError
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.scoring.join import ReadOptions, pool_trials, read_table, table_rows
from foretell.scoring.table import ForecastTable, Labels

SCHEMAS = "foretell/thresholds/"
SCHEMA = f"{SCHEMAS}2"
SPLIT_COLUMNS = ("split", "subtype")
"""Columns that may hold the split if none is named; claims have it as their subtype."""
NOTE = (
    "A claim is called True if p is above the threshold, which was chosen on the validation rows alone. Test: what\n"
    "it reaches on the test rows; Gain: minus what one half reaches there; p: McNemar's exact test of the two.\n"
    "A p exactly at the threshold is called False; in every score it counts half for either side."
)
Asking = tuple[str, str]
"""A question and the day it was asked, empty if unknown."""


@frozen
class ForecasterThreshold:
    """The threshold of one forecaster, and its value on rows where it was not chosen."""

    forecaster: str
    report: ThresholdReport
    test: McNemarTest | None
    """The threshold compared with one half, on the test rows where neither equals p; None if there are none."""
    called_true: float
    """Share of true claims in the test rows that were called True."""
    called_false: float
    """Share of false claims that were called False."""


@frozen
class ThresholdResult(Result):
    """The threshold of each forecaster."""

    thresholds: tuple[ForecasterThreshold, ...]
    criterion: str
    combine: str
    """How trials are combined into one forecast."""
    validation: tuple[Asking, ...]
    """The questions on which the thresholds were chosen."""
    test: tuple[Asking, ...]
    notes: tuple[str, ...] = ()
    """How the tables were read, and what was left out."""

    def to_dict(self) -> Any:
        """Return the thresholds and their value, as `foretell calibrate apply` reads them."""
        return {
            "schema": SCHEMA,
            "criterion": self.criterion,
            "combine": self.combine,
            "forecasters": self.rows(),
            "validation": [list(asking) for asking in self.validation],
            "test": [list(asking) for asking in self.test],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each forecaster."""
        return [
            {"forecaster": item.forecaster, "threshold": item.report.threshold.value, **plain_report(item)}
            for item in self.thresholds
        ]

    def print(self, console: Console) -> None:
        """Print a table."""
        columns: dict[TextColumn, Callable[[ForecasterThreshold], object]] = {
            TextColumn(head="Forecaster", shrink=12): lambda row: row.forecaster,
            TextColumn(head="threshold", right=True): lambda row: percent(row.report.threshold.value, 1),
            TextColumn(head="validation", right=True, drop=2): lambda row: f"{row.report.threshold.score:.3f}",
            TextColumn(head="test", right=True): lambda row: f"{row.report.score:.3f}",
            TextColumn(head="at 50 %", right=True): lambda row: f"{row.report.score_at_half:.3f}",
            TextColumn(head="gain", right=True): lambda row: (
                f"{signed(row.report.gain.diff, 3)} {bracket(row.report.gain.low, row.report.gain.high, 3)}"
            ),
            TextColumn(head="p", right=True, drop=1): lambda row: "–" if row.test is None else f"{row.test.p:.3f}",
            TextColumn(head="True", right=True, drop=3): lambda row: percent(row.called_true),
            TextColumn(head="False", right=True, drop=3): lambda row: percent(row.called_false),
            TextColumn(head="n", right=True, drop=2): lambda row: row.report.n,
        }
        show_text(console, f"{self.criterion}\n")
        show_table(console, self.thresholds, columns)
        show_text(console, f"{NOTE}\n")


def plain_report(threshold: ForecasterThreshold) -> dict[str, Any]:
    """Return the value of a threshold as plain data."""
    report = threshold.report
    return {
        "validation": report.threshold.score,
        "validation_n": report.threshold.n,
        "test": report.score,
        "test_at_half": report.score_at_half,
        "test_n": report.n,
        "gain": report.gain.diff,
        "gain_low": report.gain.low,
        "gain_high": report.gain.high,
        "mcnemar_p": None if threshold.test is None else threshold.test.p,
        "called_true": threshold.called_true,
        "called_false": threshold.called_false,
    }


def fit_thresholds(request: CalibrateFitRequest, settings: ThresholdSettings) -> ThresholdResult:
    """Choose the threshold of every forecaster, or of the one named, on validation rows; judge it on test rows."""
    table = read_table(
        request.forecasts, request.outcomes, ReadOptions(trials=settings.combine, columns=request.columns)
    )
    if request.forecaster is not None:
        table.require(request.forecaster)
        table = table.only(request.forecaster)
    split = _split(table, settings.split)
    parts = tuple(split.mask(name) for name in (settings.validation, settings.test))
    for name, rows in zip((settings.validation, settings.test), parts, strict=True):
        if not rows.any():
            hint = f"there are {', '.join(map(repr, split.names[:8]))}"
            raise InputError(f"no target is of the part {name!r}", column=settings.split or "split", hint=hint)
    how = Resampling(draws=settings.draws, seed=settings.seed)
    fitted = [_fit(table, name, parts, settings, how) for name in table.forecasters]
    ranked = sorted(fitted, key=lambda item: -item.report.score)
    validation, test = (_askings(table, rows) for rows in parts)
    return ThresholdResult(
        thresholds=tuple(ranked),
        criterion=settings.criterion,
        combine=settings.combine,
        validation=validation,
        test=test,
        notes=table.notes,
    )


def _split(table: ForecastTable, column: str | None) -> Labels:
    groups = table.targets.groups
    for name in (column,) if column else SPLIT_COLUMNS:
        if name in groups:
            return groups[name]
    hint = "add a column split with validation and test, or use foretell study calibration --section threshold"
    raise InputError("the outcomes have no column that splits validation and test", column=column or "split", hint=hint)


def _askings(table: ForecastTable, rows: Bools) -> tuple[Asking, ...]:
    question, due = table.targets.question, table.targets.groups.get("due")
    names = [question.names[code] for code in question.codes[rows]]
    days = [""] * len(names) if due is None else [due.names[code][:10] for code in due.codes[rows]]
    return tuple(sorted(set(zip(names, days, strict=True))))


def _fit(
    table: ForecastTable, name: str, parts: tuple[Bools, ...], settings: ThresholdSettings, how: Resampling
) -> ForecasterThreshold:
    targets, p = table.targets, table.p_of(name)
    chosen_on, judged_on = (rows & np.isfinite(p) for rows in parts)
    for part, rows in ((settings.validation, chosen_on), (settings.test, judged_on)):
        if not rows.any():
            raise InputError(f"{name} answered nothing of the part {part!r}", column="forecaster")
    outcome, weight = targets.outcome, targets.weight
    try:
        threshold = best_threshold(
            p[chosen_on], outcome[chosen_on], criterion=settings.criterion, weight=weight[chosen_on]
        )
    except ValueError as error:
        raise InputError(f"{name}: no threshold can be chosen on {settings.validation}: {error}") from None
    cluster = targets.groups.get("cluster", targets.question).codes[judged_on]
    p, outcome, weight = p[judged_on], outcome[judged_on], weight[judged_on]
    tp, fp, fn, tn = _counts(p, outcome, weight, threshold.value).tolist()
    clear = [clear_answers(right_side(p, outcome, at)) for at in (threshold.value, DEFAULT_THRESHOLD)]
    return ForecasterThreshold(
        forecaster=name,
        report=score_threshold(threshold, p, outcome, cluster, weight=weight, resampling=how),
        test=mcnemar(*clear) if np.isfinite(clear[0] + clear[1]).any() else None,
        called_true=tp / (tp + fn) if tp + fn else nan,
        called_false=tn / (tn + fp) if tn + fp else nan,
    )


def _counts(p: Floats, outcome: Floats, weight: Floats, threshold: float) -> Floats:
    return weight @ confusion_columns(p, outcome, threshold)


# The file, and its application to new forecasts.


class SavedThreshold(BaseModel):
    """The threshold of one forecaster in a file."""

    model_config = ConfigDict(extra="ignore")

    forecaster: str
    threshold: float


class SavedThresholds(BaseModel):
    """A file of `foretell calibrate fit --method threshold`."""

    model_config = ConfigDict(extra="ignore")

    criterion: Criterion
    combine: Literal["mean", "logit-mean"]
    forecasters: tuple[SavedThreshold, ...]
    validation: tuple[Asking, ...]
    test: tuple[Asking, ...]

    @property
    def by_forecaster(self) -> dict[str, float]:
        """Threshold by forecaster."""
        return {forecaster.forecaster: forecaster.threshold for forecaster in self.forecasters}


def read_thresholds(path: Path) -> SavedThresholds | None:
    """Read a file of thresholds; None if the file is something else."""
    try:
        document: Any = parse_json(path.read_bytes())
    except (OSError, InputError):
        return None
    schema = document.get("schema") if isinstance(document, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(schema, str) or not schema.startswith(SCHEMAS):
        return None
    if schema != SCHEMA:
        hint = "choose the thresholds again with foretell calibrate fit --method threshold"
        raise InputError(f"schema is {schema!r}, not {SCHEMA!r}", path=path, column="schema", hint=hint)
    try:
        return SavedThresholds.model_validate_json(json.dumps(document))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(first["msg"], path=path, column=".".join(map(str, first["loc"]))) from None


@frozen
class DecisionSummary:
    """How one forecaster's claims were called, and how well; the scores are NaN without outcomes."""

    forecaster: str
    threshold: float
    n: int
    called_true: int
    at_threshold: int
    """Claims whose p equals the threshold: called False, and counted half in the scores."""
    scored: int = 0
    """Claims with an outcome."""
    accuracy: float = nan
    balanced: float = nan
    f1: float = nan


@frozen
class DecidedForecasts(Result):
    """Forecasts called True or False."""

    forecasts: list[dict[str, Any]]
    summaries: tuple[DecisionSummary, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> Any:
        """Return the rows of the forecasts, each with a column `decision`."""
        return self.forecasts

    def print(self, console: Console) -> None:
        """Print how many were called True and, with outcomes, their scores."""
        columns: dict[TextColumn, Callable[[DecisionSummary], object]] = {
            TextColumn(head="Forecaster", shrink=12): lambda row: row.forecaster,
            TextColumn(head="threshold", right=True): lambda row: percent(row.threshold, 1),
            TextColumn(head="called True", right=True): lambda row: f"{row.called_true:,} of {row.n:,}",
        }
        if any(summary.scored for summary in self.summaries):
            for head, name in (("accuracy", "accuracy"), ("balanced", "balanced"), ("F1", "f1")):
                columns[TextColumn(head=head, right=True)] = lambda row, name=name: number(getattr(row, name), 3)
            columns[TextColumn(head="n", right=True, drop=1)] = lambda row: f"{row.scored:,}"
        show_table(console, self.summaries, columns)


def apply_thresholds(saved: SavedThresholds, request: CalibrateApplyRequest) -> DecidedForecasts:
    """Call every claim True or False; questions on which the thresholds were chosen are refused."""
    request.refuse_set(("allow_overlap",), "has no effect on thresholds")
    rows, _ = table_rows(request.forecasts, str(request.forecasts), request.columns, forecasts=True)
    rows = [{**row, "p": float(row["p"]), "target": row.get("target", "yes")} for row in rows]
    if request.forecaster is not None:
        rows = [row for row in rows if str(row["forecaster"]) == request.forecaster]
    names = list(dict.fromkeys(str(row["forecaster"]) for row in rows))
    thresholds = saved.by_forecaster
    if unknown := [name for name in names or [request.forecaster] if name not in thresholds]:
        hint = f"the file has thresholds of {', '.join(list(thresholds)[:12])}"
        raise InputError(
            f"there is no threshold of {unknown[0]!r}", column="forecaster", path=request.fitted, hint=hint
        )
    if not rows:
        raise InputError(f"no forecaster is called {request.forecaster!r}", path=request.forecasts, column="forecaster")
    if "decision" in rows[0]:
        raise InputError("the table already has a column 'decision'", path=request.forecasts, column="decision")
    notes = _overlap(saved, rows, request.fitted)
    claim, p = _claims(rows, as_odds=saved.combine == "logit-mean")
    at = np.array([thresholds[str(row["forecaster"])] for row in rows])
    decision = p[claim] > at
    _, first = np.unique(claim, return_index=True)
    who = np.array([str(row["forecaster"]) for row in rows])[first]
    scores = _scores(saved, request, names)
    summaries = [
        DecisionSummary(
            forecaster=name,
            threshold=thresholds[name],
            n=int((who == name).sum()),
            called_true=int(decision[first][who == name].sum()),
            at_threshold=int((p == at[first])[who == name].sum()),
            **scores.get(name, {}),
        )
        for name in names
    ]
    if ties := sum(summary.at_threshold for summary in summaries):
        notes += (f"{plural(ties, 'claim')} exactly at the threshold: called False, counted half in the scores.",)
    decided = [{**row, "decision": bool(called)} for row, called in zip(rows, decision, strict=True)]
    return DecidedForecasts(forecasts=decided, summaries=tuple(summaries), notes=notes)


def _asking(row: Mapping[str, Any]) -> Asking:
    return str(row["question"]), str(row.get("due") or "")[:10]


def _overlap(saved: SavedThresholds, rows: Sequence[Mapping[str, Any]], path: Path) -> tuple[str, ...]:
    """Refuse questions on which the thresholds were chosen, and return a note about those on which they were judged."""
    askings = list(dict.fromkeys(map(_asking, rows)))
    if seen := _among(askings, saved.validation):
        problem = f"{seen[0][0]} is among the {len(saved.validation)} questions on which they were chosen"
        hint = "leave the validation rows out of the forecasts"
        raise InputError(f"these thresholds must not judge these forecasts: {problem}", path=path, hint=hint)
    if judged := _among(askings, saved.test):
        return (f"{plural(len(judged), 'question')} of the split on which the thresholds were tested.",)
    return ()


def _among(askings: Iterable[Asking], known: Iterable[Asking]) -> list[Asking]:
    """Return the askings that are known. If a day is missing on either side, only the question is compared."""
    days: dict[str, set[str]] = {}
    for question, day in known:
        days.setdefault(question, set()).add(day)
    return [
        (question, day)
        for question, day in askings
        if question in days and (not day or day in days[question] or "" in days[question])
    ]


def _claims(rows: Sequence[Mapping[str, Any]], *, as_odds: bool) -> tuple[Ints, Floats]:
    """Return the code of each row's claim by one forecaster, and the probability of each claim over its trials."""
    codes: dict[tuple[str, ...], int] = {}
    keys = [(str(row["forecaster"]), *_asking(row), str(row["target"])) for row in rows]
    claim = np.array([codes.setdefault(key, len(codes)) for key in keys])
    p = np.array([row["p"] for row in rows], np.float64)
    return claim, p if len(codes) == len(rows) else pool_trials(p, claim, as_odds=as_odds)


def _scores(saved: SavedThresholds, request: CalibrateApplyRequest, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return accuracy, balanced accuracy and F1 by forecaster; empty if no outcome is known."""
    if not _resolved(request):
        return {}
    reading = ReadOptions(trials=saved.combine, columns=request.columns)
    table = read_table(request.forecasts, request.outcomes, reading)
    criteria: tuple[Criterion, ...] = ("accuracy", "balanced", "f1")
    scores: dict[str, dict[str, Any]] = {}
    for name in names:
        known = np.isfinite(p := table.p_of(name))
        if known.any():
            targets, threshold = table.targets, saved.by_forecaster[name]
            counts = _counts(p[known], targets.outcome[known], targets.weight[known], threshold)
            scores[name] = {"scored": int(known.sum())} | {c: float(score_counts(counts, c)) for c in criteria}
    return scores


def _resolved(request: CalibrateApplyRequest) -> bool:
    """Whether any outcome is known, from the forecasts or a separate table."""
    source = request.forecasts if request.outcomes is None else request.outcomes
    try:
        rows, _ = table_rows(source, str(source), request.columns, forecasts=request.outcomes is None)
    except InputError as error:
        if error.column == "outcome":
            return False
        raise
    return any(row.get("outcome") for row in rows)
