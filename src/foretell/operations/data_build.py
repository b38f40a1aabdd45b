"""Question sets built from rounds, claims, tasks and price series."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretell.data.datasets.forecastbench_download import (
    read_pulled,
    rounds_cache,
)
from foretell.data.datasets.question_files import CONTEXTS, OUTCOMES, QUESTIONS, REFERENCES
from foretell.data.datasets.question_set import (
    QuestionSet,
    union,
)
from foretell.data.files import write_atomically
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.series.series import Series, SeriesUnavailable
from foretell.frozen import frozen
from foretell.operations.requests.data import (
    ClaimsSettings,
    DataBuildRequest,
    PricesSettings,
    SampleSettings,
)
from foretell.plugins import exists, names
from foretell.questions.as_of import NO_CUTOFF, AsOf, instant
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.question import SeriesRef
from foretell.report.result import Result
from foretell.runs.question_sets import SetContexts
from foretell.runs.settings import Settings, load_settings
from foretell.scoring.long_tables import outcome_rows, write_rows

if TYPE_CHECKING:
    from foretell.data.datasets.analytica import DiscardedTask, FinancialTasks

BACKTEST = "backtest"
"""Folder within a question set for the answers of its first backtest."""


@frozen
class BuiltSet(Result):
    """A question set with outcomes, to be written into a folder."""

    questions: QuestionSet
    discarded: "tuple[DiscardedTask, ...]" = ()
    """Tasks that could not be made from a price series."""
    folders: list[Path] = field(default_factory=list[Path], repr=False, compare=False)
    """Folders that it was written to."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        return self.questions.notes

    def to_dict(self) -> dict[str, Any]:
        """Return the name of the set, the number of questions and outcomes, and what was left out."""
        built = self.questions
        counts = {"questions": len(built.questions), "outcomes": len(built.outcomes())}
        return {"name": built.name, **counts, "notes": list(built.notes), "discarded": self._discarded()}

    def write_folder(self, folder: Path) -> list[Path]:
        """Write questions.jsonl, outcomes.csv and, if tasks were discarded, discarded.csv; return their paths."""
        paths = write_question_set(self.questions, folder)
        self.folders.append(folder)
        return [*paths, *([write_rows(self._discarded(), folder / "discarded.csv")] if self.discarded else [])]

    def _discarded(self) -> list[dict[str, Any]]:
        return [
            {"series": task.series, "cutoff": task.cutoff.isoformat(), "reason": task.reason} for task in self.discarded
        ]

    def __str__(self) -> str:
        built = self.questions
        counts = f"{built.name}: {len(built.questions)} questions with {len(built.outcomes())} outcomes"
        if not self.folders:
            return counts
        folder = self.folders[-1]
        name, answers = (shlex.quote(str(path)) for path in (folder, folder / BACKTEST))
        files = [shlex.quote(str(path)) for path in (folder / BACKTEST / "forecasts.csv", folder / OUTCOMES)]
        metric = " --metric choice" if any(known.payoff is not None for known in built.resolutions) else ""
        # Answers every question by its wording; a base rate would need questions that resolved before.
        steps = (
            f"foretell backtest {name} -F outside-view --out {answers}",
            f"foretell score -f {files[0]} -o {files[1]}{metric}",
        )
        return "\n".join(
            [counts, *(f"Next: {step}" for step in steps), f"Or, in the settings of a run: questions: {name}"]
        )


def write_question_set(questions: QuestionSet, folder: Path) -> list[Path]:
    """Write questions.jsonl, outcomes.csv and, if the set has them, contexts.jsonl and references.jsonl.

    Returns their paths. Every command reads the set by the folder.
    """
    file, contexts_file, contexts = folder / QUESTIONS, folder / CONTEXTS, SetContexts(questions)
    write_atomically(file, "".join(f"{to_json(question)}\n" for question in questions.questions).encode())
    lines = [f"{context.to_json()}\n" for question in questions.questions if (context := contexts.get(question))]
    if lines:
        write_atomically(contexts_file, "".join(lines).encode())
    else:
        contexts_file.unlink(missing_ok=True)  # Of another set that was written here before.
    outcomes = write_rows(outcome_rows(questions.questions, questions.resolutions), folder / OUTCOMES)
    references_file = folder / REFERENCES
    if questions.references:
        write_atomically(
            references_file, "".join(f"{json.dumps(asdict(known))}\n" for known in questions.references).encode()
        )
    else:
        references_file.unlink(missing_ok=True)
    more = ((contexts_file, bool(lines)), (references_file, bool(questions.references)))
    return [file, outcomes, *(path for path, written in more if written)]


async def build(request: DataBuildRequest, settings: Settings | None = None) -> BuiltSet:
    """Build a question set from a round, claims, tasks or price series.

    Raises InputError if a setting or a source cannot be used, or if no question can be made.
    """
    from foretell.data.datasets.analytica import read_claims, read_options

    chosen = request.SETTINGS[request.kind].from_settings(request.set)
    discarded: tuple[DiscardedTask, ...] = ()
    match chosen:
        case SampleSettings():
            built = _draw_sample(request, chosen)
        case ClaimsSettings():
            built = read_claims(request.sources[0], chosen.split)
        case PricesSettings():
            built = await _price_tasks(request, chosen, settings or load_settings())
            discarded = tuple(built.discarded)
        case _:
            built = read_options(request.sources[0])
    if not built.questions:
        raise InputError(f"{built.name} has no questions", hint="; ".join(built.notes) or None)
    return BuiltSet(questions=built, discarded=discarded)


def _draw_sample(request: DataBuildRequest, chosen: SampleSettings) -> QuestionSet:
    """Draw a fixed-seed sample of the resolved questions of each round, and join them."""
    from foretell.data.datasets.samples import SamplePlan, build_sample

    samples: dict[str, QuestionSet] = {}
    for due in request.sources:
        try:
            plan = SamplePlan(
                due=instant(due),
                resolved_by=instant(request.resolved_by or ""),
                per_dataset_source=chosen.per_source,
                markets=chosen.markets,
                seed=chosen.seed,
            )
        except ValueError as error:
            raise InputError(str(error), hint="write dates as 2025-10-26") from None
        if due in samples:
            raise InputError(f"the round {due} is named twice", column="SOURCE")
        samples[due] = build_sample(read_pulled(rounds_cache(), due), plan)
    drawn = [*samples.values()]
    return drawn[0] if len(drawn) == 1 else union(f"forecastbench sample {', '.join(samples)}", drawn)


async def _price_tasks(request: DataBuildRequest, chosen: PricesSettings, settings: Settings) -> "FinancialTasks":
    """Make tasks from price series."""
    from foretell.data.datasets import analytica

    try:
        cutoffs = [date.fromisoformat(day) for day in request.cutoffs]
    except ValueError as error:
        raise InputError(str(error), column="--cutoff") from None
    kind = analytica.LONG_SHORT if chosen.task == "long-short" else analytica.HIGHER_LOWER
    plan = analytica.FinancialTaskPlan(horizon_days=chosen.horizon, min_history=chosen.history)
    series = await _price_series(request.sources, chosen.series, settings)
    return analytica.build_financial_tasks(series, cutoffs, kind, plan)


async def _price_series(sources: Sequence[str], only: Sequence[str], settings: Settings) -> list[Series]:
    """Read the series of all sources, or only some of them."""
    from foretell.data.series.local import CsvSeries
    from foretell.runs.services import open_services

    series_by_name: dict[str, Series] = {}
    for source in sources:
        provider, _, id = source.partition("/")
        if Path(source).exists():
            known = CsvSeries(path=Path(source))
            for name in known.ids():
                series_by_name[name] = await known.fetch(SeriesRef(provider="csv", id=name), NO_CUTOFF)
        elif id and exists("series", provider):
            async with AsyncHttpClient(limits=HttpLimits(), access=settings.access) as http:
                services = open_services(settings, http, ())
                try:
                    ref = SeriesRef(provider=provider, id=id)
                    series_by_name[source] = await services.series.fetch(ref, AsOf(at=datetime.now(UTC), mode="live"))
                except (SeriesUnavailable, SourceError) as error:
                    raise InputError(f"{source} could not be read: {error}") from None
        else:
            hint = f"write provider/id with one of {', '.join(names('series'))}"
            raise InputError("there is no such file or series", path=source, hint=hint)
    for name in only:
        if name not in series_by_name:
            hint = f"one of {', '.join(list(series_by_name)[:12])}"
            raise InputError(f"there is no series {name!r}", column="--set series", hint=hint)
    return [series for name, series in series_by_name.items() if not only or name in only]
