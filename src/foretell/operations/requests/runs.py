"""Requests about runs: start, list, show, change and replay them, alone, in experiments and by workers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from foretell.models.model import ServiceTier
from foretell.operations.requests.asking import ShortText
from foretell.request import OperationRequest, setting
from foretell.runs.spec import RunState

RunPlace = Literal["auto", "here", "workers", "both"]
RunOrder = Literal["date", "score", "cost", "name"]


class RunRequest(OperationRequest):
    """Run the forecaster described in SPEC (a YAML file) on its questions.

    Every model reply is saved before it is used. You can stop the run at any time and start it again: it continues
    where it stopped and pays for nothing twice. The same SPEC with the same questions is the same run. If you add or
    change questions, a new run starts, unless you use --extend to add them to the existing run.

    With FORETELL_DATABASE_URL set, the work is shared with every `foretell worker`, and this command shows progress.
    """

    spec: Path | dict[str, Any] = setting(
        help="A YAML or JSON file, or the same as a mapping: questions, models, search, trials, …", argument=True
    )
    concurrency: int = setting(50, "How many questions to work on at the same time.", ge=1, le=2000)
    tier: ServiceTier | None = setting(
        None,
        "Service tier, instead of the spec's: flex costs half and may take minutes, batch half and up to a day.",
    )
    where: RunPlace = setting(
        "auto",
        "Who does the work: this process (here), the workers of the shared database (workers), both, or workers "
        "if a shared database is set (auto).",
    )
    extend: bool = setting(False, "Add new questions to the existing run of this spec, instead of starting another.")
    folder: Path | None = setting(
        None, "Also write tables of forecasts and outcomes into this folder.", metavar="FOLDER"
    )

    @field_validator("spec", mode="before")
    @classmethod
    def _spec_value(cls, given: Any) -> Any:
        if isinstance(given, str) and "\x00" in given:
            raise ValueError("the name of a file holds no null character")
        to_json: Any = getattr(given, "to_json", None)
        return given if to_json is None else json.loads(to_json())


RUN: Any = setting(
    help="Name or id of the run; the beginning of the id is enough.", argument=True, min_length=1, max_length=64
)


class ShowRequest(OperationRequest):
    """Show the answers of RUN, or every step of one QUESTION: searches, estimates, what was held back, and the answer.

    --out report.html, .md or .pdf writes a report you can send or print. For one question it has the answer next to
    market, base rate and outcome, and the evidence with sources; for a run, its scores and every question. PDF needs
    Chromium on this machine.
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"question": "as_of"}
    run: str = RUN
    question: str | None = setting(None, "One question, with every step.", argument=True, max_length=2000)
    as_of: str | None = setting(
        None, "For a report on a question that was asked on several dates: which one (default: the newest).",
        metavar="DATE", max_length=64,
    )  # fmt: skip
    limit: int | None = setting(None, "Maximum number of answers, and of steps for each trial.", ge=1)


class RunsRequest(OperationRequest):
    """List your runs with progress, cost and score.

    A run has a score as soon as two of its questions have resolved: its Brier index, next to those of the market price
    and the base rate on the same questions.
    """

    find: str = setting("", "Only runs whose name, note, tag, model or questions contain this text.", max_length=200)
    tag: tuple[ShortText, ...] = setting((), "Only runs with this tag; may be repeated.")
    state: RunState | None = setting(None, "Only runs in this state.")
    model: str = setting("", "Only runs that use this model or, without a model, this forecaster.", max_length=300)
    questions: str = setting("", "Only runs on this question set.", metavar="SET", max_length=1000)
    archived: bool = setting(False, "Include archived runs.")
    sort: RunOrder = setting(
        "date", "Order: date (newest first), score (best first), cost (highest first) or name (A to Z)."
    )
    limit: int | None = setting(None, "Maximum number of runs.", ge=1)
    offset: int = setting(0, "Skip this many.", ge=0)


class RunsRenameRequest(OperationRequest):
    """Rename RUN to NAME; without NAME, remove its name."""

    run: str = RUN
    name: str = setting("", "The new name.", argument=True, max_length=80)


class RunsTagRequest(OperationRequest):
    """Add TAGS to RUN, remove tags, write a note, or archive the run."""

    run: str = RUN
    tags: tuple[ShortText, ...] = setting((), "Tags to add.", argument=True)
    remove: tuple[ShortText, ...] = setting((), "Remove this tag; may be repeated.", metavar="TAG")
    note: str | None = setting(None, "A note; an empty one removes it.", max_length=2000)
    archive: bool = setting(False, "Hide the run from lists.")
    unarchive: bool = setting(False, "Show the run in lists again.")


class RunsRemoveRequest(OperationRequest):
    """Delete RUNS with their answers, steps and scores. Needs `--yes`.

    Paid model replies are kept, so starting the same run again costs nothing. The record of submissions is kept too.
    """

    runs: tuple[ShortText, ...] = setting(
        help="Names or ids; the beginning of an id is enough.", argument=True, min_length=1
    )
    yes: bool = setting(False, "Really delete; without it, the runs are only listed.")


class RunsStopRequest(OperationRequest):
    """Stop RUN early and use what there is.

    Trials in progress answer with their current estimate, marked as stopped early. Trials without an estimate stay
    open; `foretell runs resume` continues them. Works from any terminal, whichever process is running it.
    """

    run: str = RUN
    pause: bool = setting(False, "Record nothing for trials in progress; `foretell runs resume` continues them.")


class StoredRunRequest(OperationRequest):
    """Fields shared by continuing a run and running it again."""

    run: str = RUN
    set: Mapping[str, ShortText] = setting(
        {}, "Change a setting, such as budget.run=20; null removes it.", metavar="NAME=VALUE"
    )
    concurrency: int = setting(50, "How many questions to work on at the same time.", ge=1, le=2000)
    where: RunPlace = setting("auto", "Where to run, as in `foretell run`.")


class RunsResumeRequest(StoredRunRequest):
    """Continue RUN: answer what is missing and retry what failed. Nothing is paid for twice.

    Use --set to fix a setting first, such as `--set budget.run=20`, `--set models.agent=openai:gpt-5` or
    `--set prices.openai:own=0.5/2`. The run keeps its questions, name, note and tags. Saved replies that fit the new
    settings are reused. Earlier answers are archived.
    """

    reason: str = setting("", "Retry only what failed for this reason, as the run's page names it.", max_length=5000)


class RunsAgainRequest(StoredRunRequest):
    """Run RUN again as a new run: the same settings with the next free seed, so models are asked anew.

    A backtest asks the same questions as of the same dates. A live run asks what its question set lists now. The old
    run stays as it is; compare the two to see how much of a score is chance. Use --set to change one thing, such as
    `--set models.agent=openai:gpt-5`: the new run then keeps the seed and reuses saved replies that fit.
    """


class RunsResolveRequest(OperationRequest):
    """Look up the outcomes of RUN's questions and score it.

    Outcomes come from the question set of the run, from the question's market, or from a table you give.
    """

    run: str = RUN
    outcomes: Path | None = setting(
        None, "A table with the columns question, target and outcome (0 or 1).", flag="-o/--outcomes", metavar="FILE"
    )


class ReplayRequest(OperationRequest):
    """Recompute RUN from saved replies, without network or keys, and check that every answer is the same.

    If a reply is missing, you get an error that names the request. Nothing is paid.
    """

    run: str = RUN
    dataset: str | None = setting(None, "The questions, if the file has moved.")


class WorkerRequest(OperationRequest):
    """Work on the runs that `foretell run` has queued in the shared database (FORETELL_DATABASE_URL).

    Start as many as you like, on as many machines as you like. If one is killed, the others take over its work and get
    the replies it had received from the journal. Ctrl-C finishes the current work first; press it twice to exit now.
    """

    concurrency: int = setting(50, "How many trials to run at the same time in this worker.", ge=1, le=2000)
    total_concurrency: int | None = setting(
        None, "How many trials to run at the same time in all workers together.", ge=1
    )
    idle: float | None = setting(None, "Exit after this long without work.", metavar="SECONDS", ge=0)
    status: bool = setting(False, "Only show the workers and what is waiting.")
    drop: str | None = setting(None, "Only remove RUN from the queue, including work in progress.", metavar="RUN")


class GridRequest(OperationRequest):
    """Run the experiment in FILE: every combination of settings is one run.

    It shows the price first; --plan does only that. You can stop it at any time and start it again: it continues and
    pays for nothing twice. At the end it shows the effect of each setting. Studies read the same file, such as
    foretell study variance --grid FILE.

      foretell init grid grid.yaml

      foretell grid grid.yaml --plan
    """

    file: Path = setting(help="The grid, a YAML or JSON file.", argument=True)
    plan: bool = setting(False, "Only show what it would cost.")
    budget: float | None = setting(
        None, "Limit in dollars for all runs together, including earlier starts.", metavar="DOLLARS", gt=0
    )
    concurrency: int = setting(50, "How many questions to work on at the same time.", ge=1, le=2000)
    where: Literal["auto", "here", "workers", "both"] = setting(
        "auto", "Who does the work: this process, the workers of the shared database, or both; as in foretell run."
    )
    keep: bool = setting(False, "Save the tables for the web app, in place of earlier ones.")


class GridsRequest(OperationRequest):
    """List your experiments: every combination of settings with its state, score, interval and cost.

    Also on the web page under Runs. `foretell grid FILE` runs one.
    """

    name: str | None = setting(None, "Only the experiment with this name.", argument=True, max_length=200)
