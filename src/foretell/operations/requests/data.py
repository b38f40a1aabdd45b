"""Requests about questions and data: backtests, question sets, data sets of your own, prompts, the corpus."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from foretell.data.datasets.question_set import LateText, SetFilter, SetStatus
from foretell.questions.errors import InputError
from foretell.request import OperationRequest, setting

_BUILT: Any = "Folder for questions.jsonl and outcomes.csv."
ROUNDS_FOLDER: Any = setting(None, "Folder of the pulled rounds (default: your foretell home).", metavar="FOLDER")
SET_HELP = (
    "A file, a data set or a market: FILE, demo, forecastbench:DATE, prophet_arena:FILE, kalshi:SERIES, "
    "polymarket:SLUG, manifold:SLUG, metaculus:TOURNAMENT, the address of a market's page; an unknown name lists them."
)


class QuestionSetFields(OperationRequest):
    """Which part of a question set to use."""

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
    late_text: LateText = setting(
        "quarantine",
        "Questions whose own text was written after their date: leave them out (quarantine), ask them as they are "
        "(keep), or remove those passages (cut).",
    )

    def wanted(self) -> SetFilter:
        """The same as a value; a wrong one raises an `InputError` that names it."""
        given = {one.name: getattr(self, one.name) for one in fields(SetFilter) if hasattr(self, one.name)}
        try:
            return SetFilter(**given)
        except ValueError as error:
            raise InputError(str(error), column="--closes-after") from None


class ListingFields(QuestionSetFields):
    """Which part of a question set to use, including markets."""

    status: SetStatus | None = setting(None, "Status of a market's events (default: open).")
    minimum_volume: float = setting(
        0.0,
        "Minimum volume of a market's events, in the market's own unit.",
        flag="--min-volume",
        metavar="VOLUME",
        ge=0,
    )


class BacktestRequest(OperationRequest):
    """Test forecasters on SET (demo, forecastbench, a file of questions, a folder of tables), each as of its date.

    --out FOLDER writes forecasts.csv, outcomes.csv and failures.csv, the tables that `foretell score` reads:

      foretell backtest demo -F auto -F knn -F prior --out run

      foretell score -f run/forecasts.csv -o run/outcomes.csv
    """

    dataset: str = setting(help=SET_HELP, argument=True, metavar="SET")
    forecasters: tuple[str, ...] = setting(
        ("auto",), "A forecaster, as NAME or NAME:option=value; may be repeated.", flag="-F/--forecaster"
    )
    limit: int | None = setting(None, "Only the first N questions.", ge=1)
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
    set: Mapping[str, Any] = setting(
        {},
        "Which part of the set to use, named as in a settings file: questions.rounds=DATE, questions.category=NAME, "
        "questions.closes_after=DATE, questions.late_text=cut; may be repeated.",
        metavar="KEY=VALUE",
    )

    def wanted(self) -> SetFilter:
        """Return which part of the set to use. Raises InputError for a setting that is not about questions."""
        from foretell.runs.spec import read_changes, spec_from_mapping, with_settings

        changes = read_changes(self.set)
        for name in changes:
            if not name.startswith("questions.") or name in ("questions.dataset", "questions.digest"):
                hint = "a backtest asks no model: only questions.KEY can be set"
                raise InputError("has no effect on a backtest", column=name, hint=hint)
        if "questions.limit" in changes and self.limit is not None:
            raise InputError("questions.limit is the same as --limit", column="--set", hint="use one of them")
        questions = {"dataset": self.dataset, **({} if self.limit is None else {"limit": self.limit})}
        chosen = spec_from_mapping(with_settings({"questions": questions}, changes)).questions
        return SetFilter(**chosen.changed())


class QuestionsRequest(ListingFields):
    """Check a question set and show its contents: a file, a data set, or a market's current questions.

    foretell questions mine.csv

    foretell questions kalshi:KXFED --closes-before 2027-01-01
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"topics": "model"}
    dataset: str = setting(help=SET_HELP, argument=True)
    as_of: str | None = setting(None, "Date for rows without one (default: now).", metavar="DATE")
    topics: bool = setting(False, "Sort every question into one of ten topics.")
    model: str | None = setting(
        None, "Model that assigns topics, as provider:name; without it, the wording decides.", metavar="MODEL"
    )


class FetchRequest(ListingFields):
    """Save a question set to a file as it is now, one JSON line per question: any market, tournament or data set.

    For a market, these are the open questions: yes/no, multiple choice, groups, conditional pairs, numbers and dates.
    Run the file with a spec that says mode: live, then submit the run; or use it later as of this day.

      foretell fetch metaculus:minibench --new

      foretell fetch polymarket --min-volume 100000 --limit 50
    """

    dataset: str = setting(help=SET_HELP, argument=True)
    limit: int | None = setting(200, "Maximum number of questions.", ge=1, le=5000)
    new: bool = setting(False, "Only questions that were not submitted from this machine before.")


class DataPullRequest(OperationRequest):
    """Download ForecastBench rounds with their outcomes so far, or a Prophet Arena data set.

    Intact files are not downloaded again; outcomes are updated.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "source=prophet-arena": "dataset",
        "source=forecastbench": "rounds latest prices url",
    }
    source: Literal["forecastbench", "prophet-arena"] = setting(help="The source.", argument=True)
    dataset: str = setting("", "Prophet Arena: the data set.", metavar="SLUG[@VERSION]")
    rounds: tuple[str, ...] = setting((), "Due date of a round; may be repeated.", flag="--round", metavar="DATE")
    latest: bool = setting(False, "The newest round; this is the default if no round is named.")
    prices: bool = setting(True, "Also read each market's price at the due date; published prices are ten days old.")
    url: str | None = setting(None, "Where the files are published.", env="FORETELL_FORECASTBENCH_URL")
    folder: Path | None = ROUNDS_FOLDER


class DataListRequest(OperationRequest):
    """List the downloaded rounds, with the number of resolved targets."""

    folder: Path | None = ROUNDS_FOLDER


class TrancheRequest(OperationRequest):
    """Draw a fixed-seed sample of the resolved questions of ROUND, as the BLF study drew its test sets.

    foretell data build tranche 2025-10-26 --resolved-by 2026-01-05 --folder tranche
    """

    round: str = setting(help="Due date of a pulled round.", argument=True, metavar="ROUND")
    resolved_by: str = setting(help="Ignore outcomes after this day.", metavar="DATE")
    per_source: int | None = setting(20, "Questions per data-set source.", ge=1)
    markets: int | None = setting(None, "Maximum number of market questions (default: all).", ge=0)
    seed: int = setting(42, "Seed of the draw.")
    data: Path | None = ROUNDS_FOLDER
    folder: Path = setting(Path("tranche"), _BUILT, metavar="FOLDER")


class ClaimsRequest(OperationRequest):
    """Turn CLAIMS, statements that a publication later confirmed or refuted, into questions asked the day before."""

    source: Path = setting(help="One JSON object per line: claim, label, published.", argument=True, metavar="CLAIMS")
    split: Literal["validation", "test"] | None = setting(None, "Only this part of the claims.")
    folder: Path = setting(Path("claims"), _BUILT, metavar="FOLDER")


class OptionTasksRequest(OperationRequest):
    """Turn TASKS, choices with the return on each option, into questions: which one pays most?"""

    source: Path = setting(help="One JSON object per line: options with payoffs.", argument=True, metavar="TASKS")
    folder: Path = setting(Path("options"), _BUILT, metavar="FOLDER")


class FinancialTasksRequest(OperationRequest):
    """Create tasks from price SERIES: long or short, or higher or lower, asked on each --cutoff day.

    SERIES is a CSV file (date, value; or series, date, value), a folder of them, or a series by its name, such as
    yahoo/AAPL. A task needs enough history, a price at both ends and options that pay differently; discarded.csv lists
    every discarded one with its reason.

      foretell data build financial yahoo/AAPL yahoo/MSFT --cutoff 2024-06-01 --folder tasks
    """

    sources: tuple[str, ...] = setting(
        help="A CSV file, a folder of them, or provider/id.", argument=True, metavar="SERIES...", min_length=1
    )
    kind: Literal["long-short", "higher-lower"] = setting("long-short", "The options of each task.")
    series: tuple[str, ...] = setting((), "Only this series of the files; may be repeated.", metavar="ID")
    cutoffs: tuple[str, ...] = setting(
        (), "A day on which the question is asked; may be repeated.", flag="--cutoff", metavar="DATE", min_length=1
    )
    horizon: int = setting(365, "Days from the question to its answer.", ge=1)
    history: int = setting(250, "Minimum number of observations before the question.", ge=1)
    folder: Path = setting(Path("financial"), _BUILT, metavar="FOLDER")


class InspectLogRequest(OperationRequest):
    """Turn an Inspect AI LOG (.eval or .json, or a folder of them) into the tables that `foretell score` reads.

    foretell data inspect-log logs/ --folder run; foretell score -f run/forecasts.csv -o run/outcomes.csv
    """

    log: Path = setting(help="A log (.eval or .json), or a folder of them.", argument=True)
    folder: Path = setting(Path("inspect"), "Folder for the tables.", metavar="FOLDER")
    name: str | None = setting(None, "Name of the forecaster (default: the model of each log).", metavar="FORECASTER")


_CORPUS: Any = setting(
    None, "File of the corpus (default: the corpus in settings.toml, or corpus.db in FORETELL_HOME).", metavar="FILE"
)


class CorpusImportRequest(OperationRequest):
    """Import files or folders (.txt, .md, .html, .jsonl, .warc, .warc.gz) into the corpus.

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
