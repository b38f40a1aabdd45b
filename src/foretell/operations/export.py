"""A run's forecasts in the format of a benchmark."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.atomic_file import write_atomically
from foretell.operations.requests import ExportRequest
from foretell.operations.result import Result
from foretell.operations.submit import forecastbench_team
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.runs.settings import Settings, load_settings

if TYPE_CHECKING:
    from foretell.forecasters.base_rates.rates import Rates
    from foretell.questions.question import Question
    from foretell.runs.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class ExportResult(Result):
    """A file for a benchmark, and how much of the round it answers."""

    path: Path
    body: dict[str, Any]
    coverage: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """How much of each kind was answered."""
        return self.coverage

    def to_dict(self) -> Any:
        """The file's own content."""
        return self.body

    def __str__(self) -> str:
        """Where the file is."""
        return f"Wrote {self.path}"


def export_forecastbench(request: ExportRequest) -> ExportResult:
    """Write a run as a ForecastBench submission, checked against the round's question set."""
    from foretell.runs.combine import combine_trials, combining_by_name
    from foretell.submit.forecastbench import build_submission, check_submission, require_coverage

    team, settings = forecastbench_team(request), load_settings()
    spec, answers = _run_answers(settings, request.run)
    day = _round(answers, request.round)
    questions = _questions(settings, day)
    of_round = [answer for answer in answers if _round_day(answer) == day]
    how = combining_by_name(request.combine or spec.aggregate, _rates(settings))
    body = build_submission(combine_trials(of_round, questions, how), questions, team, reasoning=request.reasoning)
    coverages = check_submission(body, questions)
    if not request.incomplete:
        require_coverage(coverages)
    path = request.folder / team.file_name(day)
    write_atomically(path, json.dumps(body, ensure_ascii=False, indent=1).encode())
    return ExportResult(path=path, body=body, coverage=tuple(map(str, coverages)))


def _run_answers(settings: Settings, start: str) -> "tuple[RunSpec, list[Forecast | Failure]]":
    """The run whose id begins so, with all its answers."""
    from foretell.runs.spec import spec_from_json
    from foretell.runs.store import RunStore, find_run

    with closing(RunStore(settings.store)) as store:
        run = find_run(store, start)
        spec = spec_from_json(next(row.spec for row in store.runs() if row.id == run))
        answers = list(store.answers(run))
    if spec.questions.dataset != "forecastbench":
        raise InputError(f"run {run} asked {spec.questions.dataset!r}, not a round of forecastbench")
    if spec.clairvoyant:
        raise InputError(f"run {run} was clairvoyant: it saw the future, so it is no forecast")
    if not answers:
        raise InputError(f"run {run} has no answers yet", hint="start it again with foretell run")
    return spec, answers


def _round_day(answer: Forecast | Failure) -> str:
    return answer.as_of.at.date().isoformat()


def _round(answers: Sequence[Forecast | Failure], wanted: str | None) -> str:
    """The round that is meant: the only one of the run, or the one that was named."""
    days = sorted({_round_day(answer) for answer in answers})
    if wanted is None and len(days) > 1:
        raise InputError(f"the run asked {len(days)} rounds: {', '.join(days)}", hint="name one with --round DATE")
    if wanted is not None and wanted not in days:
        raise InputError(f"the run did not ask {wanted}", column="--round", hint=f"it asked {', '.join(days)}")
    return wanted or days[0]


def _rates(settings: Settings) -> "Rates | None":
    """Base rates from the pulled rounds; each question sees only what was known before its date."""
    from foretell.runs.question_sets import open_benchmark

    return open_benchmark("forecastbench", folder=settings.home / "forecastbench").past.rates


def _questions(settings: Settings, day: str) -> "Sequence[Question]":
    """The whole question set, also where the run asked only a part of it."""
    from foretell.data.datasets.cache import DownloadCache
    from foretell.data.datasets.forecastbench_download import read_pulled

    return read_pulled(DownloadCache(settings.home / "forecastbench"), day).questions
