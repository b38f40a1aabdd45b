"""Requests about questions and data: backtests, question sets, data sets of your own, prompts, the corpus."""

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from foretell.data.datasets.question_set import LeakyQuestions, SetFilter, SetStatus
from foretell.questions.errors import InputError, said
from foretell.request import OperationRequest, setting

SET_HELP = (
    "A file, a data set or a market: FILE, demo, forecastbench:DATE, prophet_arena:FILE, kalshi:SERIES, "
    "polymarket:SLUG, manifold:SLUG, metaculus:TOURNAMENT, the address of a market's page; an unknown name lists them."
)


class ListingFields(OperationRequest):
    """Which part of a question set or of a market's list to use."""

    rounds: tuple[str, ...] = setting(
        (), "Only this round of forecastbench or of a folder of tables; may be repeated.", flag="--round",
        metavar="DATE",
    )  # fmt: skip
    limit: int | None = setting(None, "Only the first N questions.", ge=1)
    closes_after: str | None = setting(
        None, "Only questions that close on this day or later.", metavar="DATE", max_length=40
    )
    closes_before: str | None = setting(None, "Only questions that close by this day.", metavar="DATE", max_length=40)
    category: str = setting("", "Only this category or market tag.", max_length=200)
    leaky_questions: LeakyQuestions = setting(
        "exclude",
        "Questions whose own text was written after their date: leave them out (exclude), ask them as they are "
        "(keep), or remove those passages (redact).",
    )
    status: SetStatus | None = setting(None, "Status of a market's events (default: open).")
    minimum_volume: float = setting(
        0.0,
        "Minimum volume of a market's events, in the market's own unit.",
        flag="--min-volume",
        metavar="VOLUME",
        ge=0,
    )

    def wanted(self) -> SetFilter:
        """Return the fields as a filter. Raises InputError that names a wrong value."""
        values = {field.name: getattr(self, field.name) for field in fields(SetFilter) if hasattr(self, field.name)}
        try:
            return SetFilter(**values)
        except ValueError as error:
            raise InputError(said(error), column="--closes-after") from None


class QuestionSetRequest(OperationRequest):
    """A question set and the part of it to use, chosen by the keys of a run's settings."""

    dataset: str = setting(help=SET_HELP, argument=True, metavar="SET")
    limit: int | None = setting(None, "Only the first N questions.", ge=1)
    set: Mapping[str, Any] = setting(
        {},
        "Only some questions, by a key of a run's settings: questions.rounds=DATE, questions.closes_after=DATE, "
        "questions.closes_before=DATE, questions.category=NAME, questions.status=open|closed|resolved, "
        "questions.minimum_volume=N, questions.leaky_questions=keep|redact; may be repeated.",
        metavar="KEY=VALUE",
    )

    def wanted(self) -> SetFilter:
        """Return which questions of the set to use.

        Raises InputError if a setting is unknown, has a wrong value or does not select questions.
        """
        from foretell.runs.spec import read_changes, spec_from_mapping

        keys, changes = [field.name for field in fields(SetFilter)], read_changes(self.set)
        for name in changes:
            section, _, key = name.rpartition(".")
            if section != "questions" or key not in keys:
                near = get_close_matches(key, keys, n=1) if section in ("", "questions") else []
                hint = f"did you mean questions.{near[0]}?" if near else f"known: questions.{', questions.'.join(keys)}"
                raise InputError("does not select questions", column=f"--set {name}", hint=hint)
        if self.limit is not None and "questions.limit" in changes:
            raise InputError("questions.limit is the same as --limit", column="--set", hint="use one of them")
        chosen = {name.removeprefix("questions."): value for name, value in changes.items() if value is not None}
        limit = {} if self.limit is None else {"limit": self.limit}
        return spec_from_mapping({"questions": {"dataset": self.dataset, **chosen, **limit}}).questions


class BacktestRequest(QuestionSetRequest):
    """Test forecasters on SET (demo, forecastbench, a file of questions, a folder of tables), each as of its date.

    --out FOLDER writes forecasts.csv, outcomes.csv and failures.csv, the tables that `foretell score` reads:

      foretell backtest demo -F auto -F knn -F prior --out run

      foretell score -f run/forecasts.csv -o run/outcomes.csv
    """

    forecasters: tuple[str, ...] = setting(
        ("auto",), "A forecaster, as NAME or NAME:option=value; may be repeated.", flag="-F/--forecaster"
    )
    series: Path | None = setting(
        None,
        "CSV file or folder of time series; by default, the series your questions name are read from their publisher.",
        metavar="PATH",
    )
    fetch_series: bool = setting(
        False,
        "Also read the series of published rounds from their sources, as known on the due date: FRED's vintages, "
        "Yahoo, DBnomics, ACLED, Wikipedia.",
    )


class DataShowRequest(QuestionSetRequest):
    """Check a question set and show its questions: a file, a data set, or what a market lists now.

    --out writes the questions to a file that data show, run and backtest read again, one JSON object per line. Given a
    folder, it also writes the known outcomes:

      foretell data show mine.csv

      foretell data show kalshi:KXFED --set questions.closes_before=2027-01-01

      foretell data show metaculus:minibench --new --out questions.jsonl

      foretell data show forecastbench:2025-10-26 --out round
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"topics": "model"}
    new: bool = setting(False, "Only questions that were not submitted from this machine before.")
    topics: bool = setting(False, "Assign every question to one of ten topics; a file has the topic as category.")
    model: str | None = setting(
        None, "Model that assigns topics, as provider:name; without it, the wording decides.", metavar="MODEL"
    )


class DataPullRequest(OperationRequest):
    """Download ForecastBench rounds with their outcomes so far, or a Prophet Arena data set.

    Without --round, the newest round is downloaded. Intact files are not downloaded again; outcomes are updated.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "source=prophet-arena": "dataset",
        "source=forecastbench": "rounds prices",
    }
    source: Literal["forecastbench", "prophet-arena"] = setting(help="The source.", argument=True, metavar="NAME")
    dataset: str = setting("", "Prophet Arena: the data set.", metavar="SLUG[@VERSION]")
    rounds: tuple[str, ...] = setting((), "Due date of a round; may be repeated.", flag="--round", metavar="DATE")
    prices: bool = setting(True, "Also read each market's price at the due date; published prices are ten days old.")


class DataListRequest(OperationRequest):
    """List the downloaded rounds, with the number of resolved targets."""


class SampleSettings(OperationRequest):
    """How a sample of each round is drawn."""

    per_source: int | None = setting(20, "Questions per data-set source.", ge=1)
    markets: int | None = setting(None, "Maximum number of market questions (default: all).", ge=0)
    seed: int = setting(42, "Seed of the draw.")


class ClaimsSettings(OperationRequest):
    """Which claims are used."""

    split: Literal["validation", "test"] | None = setting(None, "Only this part of the claims.")


class PricesSettings(OperationRequest):
    """How tasks are made from price series."""

    task: Literal["long-short", "higher-lower"] = setting("long-short", "The options of each task.")
    series: tuple[str, ...] = setting((), "Only these series of the files.")
    horizon: int = setting(365, "Days from the question to its answer.", ge=1)
    history: int = setting(250, "Minimum number of observations before the question.", ge=1)


class DataBuildRequest(OperationRequest):
    """Build a question set: a folder with questions.jsonl (to run) and outcomes.csv (to score against).

    KIND is the source of the questions.

    sample: a fixed-seed sample of the resolved questions of pulled rounds, as the BLF study drew its test sets. SOURCE
    is the due date of a round; --resolved-by is needed. Settings, for each round: per_source=20, markets=N, seed=42.

    claims: statements that a publication later confirmed or refuted, asked the day before. SOURCE is a file with one
    JSON object per line: claim, label, published. Settings: split=validation|test.

    options: which of several options pays most? SOURCE is a file with one JSON object per line: options with payoffs.

    prices: will a price rise or fall, asked on each --cutoff day. SOURCE is a CSV file (date, value; or series, date,
    value), a folder of them, or a series by its name, such as yahoo/AAPL. Discarded tasks are listed in discarded.csv.
    Settings: task=long-short|higher-lower, series=ID,ID, horizon=365, history=250.

      foretell data build sample 2025-10-26 2025-11-09 --resolved-by 2026-04-10 --out sample

      foretell data build prices yahoo/AAPL yahoo/MSFT --cutoff 2024-06-01 --set horizon=30 --out tasks
    """

    SETTINGS: ClassVar[Mapping[str, type[OperationRequest]]] = {
        "sample": SampleSettings,
        "claims": ClaimsSettings,
        "options": OperationRequest,
        "prices": PricesSettings,
    }
    """Kind → its settings."""
    ONLY_WITH: ClassVar[Mapping[str, str]] = {"kind=prices": "cutoffs", "kind=sample": "resolved_by"}
    kind: Literal["sample", "claims", "options", "prices"] = setting(
        help="What to make questions from.", argument=True, metavar="KIND"
    )
    sources: tuple[str, ...] = setting(
        help="A round, a file or series; what it is depends on KIND.", argument=True, metavar="SOURCE...", min_length=1
    )
    set: Mapping[str, Any] = setting({}, "A setting of this kind; may be repeated.", metavar="KEY=VALUE")
    cutoffs: tuple[str, ...] = setting(
        (), "For prices: a day on which the question is asked; may be repeated.", flag="--cutoff", metavar="DATE"
    )
    resolved_by: str | None = setting(None, "For sample: ignore outcomes after this day.", metavar="DATE")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "prices" and not self.cutoffs:
            raise InputError("is needed: the day on which the questions are asked", column="--cutoff")
        if self.kind == "sample" and self.resolved_by is None:
            raise InputError("is needed: the day up to which outcomes count", column="--resolved-by")
        if self.kind in ("claims", "options") and len(self.sources) > 1:
            raise InputError(
                f"{self.kind} are built from one source", column="SOURCE", hint=f"leave out {self.sources[1]}"
            )
        return self


_CORPUS: Any = setting(
    None, "File of the corpus (default: the corpus in settings.toml, or corpus.db in FORETELL_HOME).", metavar="FILE"
)


class CorpusAddRequest(OperationRequest):
    """Add files or folders (.txt, .md, .html, .jsonl, .warc, .warc.gz) to the corpus.

    Documents that are already there are not stored twice.
    """

    sources: tuple[Path, ...] = setting(
        help="Files or folders of documents.", argument=True, metavar="SOURCES...", min_length=1
    )
    corpus: Path | None = _CORPUS


class CorpusSearchRequest(OperationRequest):
    """Search the corpus, best matches first."""

    query: str = setting(help="What to look for.", argument=True)
    as_of: str | None = setting(None, "Only documents dated up to the end of this day.", metavar="DATE")
    limit: int = setting(10, "Maximum number of documents.", ge=1, le=100)
    corpus: Path | None = _CORPUS
