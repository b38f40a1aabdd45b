"""Compare forecasters with each other, and compute how many questions a comparison needs."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rich.console import Console

from foretell.frozen import frozen
from foretell.metrics.power import PowerTarget, questions_needed
from foretell.number_text import percent
from foretell.operations.requests.scoring import CompareRequest, Detect
from foretell.operations.score import Tables, gather_tables, measure_options
from foretell.questions.errors import InputError, known_names
from foretell.report.comparison import comparison_study, matrix_study, print_comparison, print_matrix
from foretell.report.result import DocumentResult, Result
from foretell.report.study_result import StudyResult
from foretell.scoring.added_tables import named_tables
from foretell.scoring.baselines import BASELINES
from foretell.scoring.join import forecasters_in
from foretell.scoring.score import (
    COMPARISON_SCHEMA,
    PairComparison,
    ScoringOptions,
    compare_pair,
    mcnemar_of_pair,
    pilot_of,
    prepared,
    score_table,
)
from foretell.scoring.table import ForecastTable
from foretell.scoring.table_input import names_a_file
from foretell.scoring.verdict import Correction, Verdict, corrected

if TYPE_CHECKING:
    from foretell.runs.settings import Settings

MOST_IN_MATRIX = 24
"""Most forecasters of which all pairs are compared: the best by the metric."""


@frozen
class CompareResult(DocumentResult):
    """Forecasters against one of them, or all pairs, with p-values corrected for the number of comparisons."""

    reference: str | None
    """The forecaster that all others are compared with; None if all pairs are."""
    table: ForecastTable
    pairs: tuple[PairComparison, ...]
    correction: Correction

    @property
    def matrix(self) -> bool:
        """Whether these are all pairs of three forecasters or more."""
        return self.reference is None and len(self.pairs) > 1

    def to_dict(self) -> Any:
        """Return the comparison of two forecasters, or a list of comparisons."""
        merged = (note for pair in self.pairs for note in pair.notes)
        notes = {"notes": list(dict.fromkeys((*self.table.notes, *merged)))}
        if len(self.pairs) == 1:
            return self.pairs[0].to_dict() | notes
        pairs = [pair.to_dict() for pair in self.pairs]
        about = {"schema": COMPARISON_SCHEMA, "reference": self.reference, "correction": self.correction}
        return {**about, "pairs": pairs, **notes}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each pair and group; p-values are corrected for the number of pairs within each group."""
        return [row for pair in self.pairs for row in pair.rows()]

    @property
    def document(self) -> StudyResult:
        """The comparison with its tables and charts."""
        if self.matrix:
            return matrix_study(self.table, self.pairs, self.correction)
        return comparison_study(self.table, self.pairs)

    def print(self, console: Console) -> None:
        """Print the verdicts, and a table with a row for each pair and group, or the matrix of all pairs."""
        if self.matrix:
            print_matrix(self.document, console)
        else:
            print_comparison(self.pairs, console, self.table.notes)


def compare(request: CompareRequest, settings: "Settings | None" = None) -> "CompareResult | PowerAnalysis":
    """Compare forecasters on the targets that both of a pair answered; with `detect`, plan the next comparison.

    Raises:
        InputError: If a name is neither a file, a forecaster nor a stored run, or if there is nothing to compare.
    """
    if request.detect is not None:
        return analyse_power(request, request.detect, settings)
    tables, names = _inputs(request, settings)
    options = measure_options(request)
    wanted = {*names, *filter(None, [request.reference])}
    table = prepared(tables.read(), options, baselines=bool(wanted & set(BASELINES)))
    own = [name for name in table.forecasters if name not in BASELINES]
    # A run of its own is compared without the additional answers that it combined.
    everybody = list(tables.runs) if tables.runs and request.forecasts is None and not _files(request) else own
    if request.reference is None and (not names or set(names) == set(tables.runs)):
        pairs = _all_pairs(table, everybody, options)
        reference = None
    else:
        reference = request.reference or names[-1]
        others = [name for name in names or everybody if name != reference]
        if not others:
            raise InputError("there is nothing to compare with", hint="name two forecasters or more")
        for name in (reference, *others):
            table.require(name)
        pairs = [compare_pair(table, name, reference, options) for name in others]
    return CompareResult(
        reference=reference,
        table=table,
        pairs=tuple(correct_together(pairs, request.correction)),
        correction=request.correction,
    )


def _files(request: CompareRequest) -> list[str]:
    return [name for name in request.names if names_a_file(name)]


def _inputs(request: CompareRequest, settings: "Settings | None") -> tuple[Tables, list[str]]:
    """Return the tables of a request, and the forecasters it names, those of stored runs among them."""
    files = _files(request)
    others = list(dict.fromkeys(name for name in request.names if name not in files))
    sources = [*named_tables(request.forecasts).values(), *files]
    known = {name for source in sources if others for name in forecasters_in(source, request.columns)} | set(BASELINES)
    runs = [name for name in others if name not in known]
    if runs and sources:
        _require_runs(runs, known, settings)
    tables = gather_tables(request, (*files, *runs), settings)
    forecaster = dict(zip(runs, tables.runs, strict=False))
    return tables, [forecaster.get(name, name) for name in others]


def _require_runs(names: Sequence[str], known: set[str], settings: "Settings | None") -> None:
    # Imported here: files are compared without the store of runs.
    from foretell.runs.settings import load_settings
    from foretell.runs.store import RunStore, find_run_row

    with closing(RunStore((settings or load_settings()).store)) as store:
        for name in names:
            try:
                find_run_row(store, name)
            except InputError:
                problem = f"{name!r} is neither a file, a forecaster of the tables nor a stored run"
                raise InputError(problem, hint=known_names(name, sorted(known - set(BASELINES)))) from None


def _all_pairs(table: ForecastTable, names: Sequence[str], options: ScoringOptions) -> list[PairComparison]:
    """Compare all pairs, each with McNemar's test; of three forecasters or more, the better ones first."""
    if len(names) < 2:
        raise InputError("there is nothing to compare with", hint="give forecasts of two forecasters or more")
    if len(names) > 2:
        board = score_table(table.only(*names), replace(options, by=(), baselines=False))
        names = [row.name for row in board.sections()[0].rows][:MOST_IN_MATRIX]
    pairs = [compare_pair(table, first, second, options) for first, second in combinations(names, 2)]
    if len(pairs) == 1:
        return pairs
    return [replace(pair, mcnemar=mcnemar_of_pair(table, pair.first, pair.second, options.metric)) for pair in pairs]


def correct_together(pairs: Sequence[PairComparison], correction: Correction) -> list[PairComparison]:
    """Correct the p-values of pairs that were compared together, group by group."""
    if len(pairs) < 2:
        return list(pairs)
    groups: dict[tuple[tuple[str, str], ...], list[Verdict]] = {}
    for pair in pairs:
        for verdict in pair.verdicts:
            groups.setdefault(tuple(verdict.group.items()), []).append(verdict)
    by_pair = {
        (verdict.first, verdict.second, group): verdict
        for group, verdicts in groups.items()
        for verdict in corrected(verdicts, correction)
    }
    return [
        replace(
            pair,
            verdicts=tuple(by_pair[pair.first, pair.second, tuple(verdict.group.items())] for verdict in pair.verdicts),
        )
        for pair in pairs
    ]


# How many questions the next comparison needs.


@frozen
class PowerAnalysis(Result):
    """The number of targets needed to detect a gain, and its basis."""

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


NOT_IN_POWER = ("by", "metric", "reference", "missing", "bootstrap", "correction")
"""Options of `compare` that have no effect on the number of questions."""
USUAL_INDEX = 70.0
"""Brier index to plan with if no forecasters are named."""
PERFECT_INDEX = 100.0


def analyse_power(request: CompareRequest, detect: Detect, settings: "Settings | None" = None) -> PowerAnalysis:
    """Compute how many targets are needed to detect a gain."""
    request.refuse_set(NOT_IN_POWER, "has no effect with --detect")
    sd, inflation, level, source = _spread(request, settings)
    index, gain = level if detect.index is None else detect.index, abs(detect.points)
    if not gain:
        raise InputError("a gain of zero cannot be detected", column="--detect", hint="e.g. --detect 1")
    if index + gain / 2 > PERFECT_INDEX:
        hint = f"around {index:.1f}, at most {2 * (PERFECT_INDEX - index):.1f}"
        raise InputError(f"a Brier index cannot exceed {PERFECT_INDEX:g}", column="--detect", hint=hint)
    # From index I − g/2 to I + g/2 the Brier score (1 − I/100)² falls by exactly g·(1 − I/100)/50.
    brier_gain = gain * (1 - index / 100) / 50
    target = PowerTarget(power=detect.power, alpha=detect.alpha)
    return PowerAnalysis(
        targets=questions_needed(brier_gain, sd, target, inflation=inflation),
        gain=detect.points,
        power=detect.power,
        alpha=detect.alpha,
        sd=sd,
        index=index,
        design_effect=inflation,
        source=source,
    )


def _spread(request: CompareRequest, settings: "Settings | None") -> tuple[float, float, float, str]:
    """Return standard deviation, design effect and Brier index to plan with, and where they come from."""
    if request.sd is not None:
        if request.names or request.forecasts is not None:
            raise InputError(
                "sets the spread, so forecasts have no effect", column="--sd", hint="leave one of them out"
            )
        return request.sd, 1.0, USUAL_INDEX, "as given; targets are assumed independent"
    if not request.names and request.forecasts is None:
        raise InputError("the spread is unknown", hint="give --sd, or two forecasters and their forecasts")
    tables, names = _inputs(request, settings)
    table = tables.read()
    names = names or list(table.forecasters)
    if len(names) != 2:
        hint = f"name two of {', '.join(table.forecasters[:12])}"
        raise InputError(f"the spread is that of two forecasters, and there are {len(names)}", hint=hint)
    first, second = names
    for name in names:
        table.require(name)
    pilot = pilot_of(table, first, second)
    if pilot is None:
        problem = f"{first} and {second} never differ, or share fewer than two clusters"
        raise InputError(f"{problem}: there is no spread to plan from")
    source = f"from {pilot.n:,} targets in {pilot.n_clusters} clusters"
    return pilot.sd, max(1.0, pilot.inflation), pilot.index, source
