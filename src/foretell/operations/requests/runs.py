"""Requests about runs: start, list, show, change and replay them, alone, in experiments and by workers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from foretell.operations.requests.asking import SET, ShortText
from foretell.questions.errors import InputError
from foretell.request import OperationRequest, setting

RunPlace = Literal["auto", "here", "workers", "both"]
RunOrder = Literal["date", "score", "cost", "name"]
WHERE: Any = setting(
    "auto",
    "Who does the work: this process (here), the workers of the shared database (workers), both, or workers if a "
    "shared database is set (auto).",
)


class RunRequest(OperationRequest):
    """Run the settings file SPEC on its questions, or continue the stored RUN.

    Every model reply is saved before it is used. You can stop a run at any time and start it again: it continues where
    it stopped, retries what failed, and pays for nothing twice. The same SPEC with the same questions is the same run.
    If you add or change questions, a new run starts, unless you use --extend to add them to the existing run.

    With --set, a stored RUN is changed first, such as --set budget.run=20: it keeps its questions, name, note and tags,
    saved replies that fit the new settings are reused, and earlier answers are archived. --again starts a new run
    instead, with the next free seed, so models are asked again: compare the two to see how much of a score is chance.

    With FORETELL_DATABASE_URL set, the work is shared with every `foretell worker`, and this command shows progress.

      foretell run run.yaml --plan

      foretell run autumn --only-failed
    """

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"plan": "prompts"}
    spec: Path | dict[str, Any] = setting(
        help="A settings file (YAML or JSON), the same as a mapping, or the name or id of a stored run.",
        argument=True,
        metavar="SPEC|RUN",
    )
    again: bool = setting(False, "Start a new run with the settings of RUN and the next free seed.")
    pilot: int | None = setting(
        None, "Only ask the first N questions once, and report whether the run would work and what it would cost.",
        metavar="N", ge=1,
    )  # fmt: skip
    plan: bool = setting(False, "Only show what there is to do, what it would cost and how long it would take.")
    prompts: bool = setting(False, "Also show the prompts that the models would receive.")
    extend: bool = setting(False, "Add new questions to the existing run of SPEC, instead of starting another.")
    only_failed: str | None = setting(
        None, "Only retry what failed in RUN; with REASON, only what failed for that reason.", metavar="[REASON]",
        alone="any", min_length=1, max_length=5000,
    )  # fmt: skip
    where: RunPlace = WHERE
    set: Mapping[str, Any] = SET

    @field_validator("spec", mode="before")
    @classmethod
    def _spec_value(cls, value: Any) -> Any:
        if isinstance(value, str) and "\x00" in value:
            raise ValueError("the name of a file cannot contain a null character")
        to_json: Any = getattr(value, "to_json", None)
        return value if to_json is None else json.loads(to_json())

    @model_validator(mode="after")
    def _one_way_to_start(self) -> Any:
        chosen = [flag for name, flag in STARTS.items() if self._is_set(name)]
        if len(chosen) > 1:
            raise InputError(f"cannot be used together with {chosen[0]}", column=chosen[1], hint="leave one out")
        if self.only_failed is not None and self.set:
            hint = "change the settings and retry everything, or retry with the same settings"
            raise InputError("changed settings are for all that failed", column="--only-failed", hint=hint)
        return self

    @property
    def stored(self) -> str | None:
        """The name of a stored run; None for a settings file or a mapping."""
        spec = self.spec
        if isinstance(spec, dict) or spec.suffix in (".yaml", ".yml", ".json") or spec.is_file():
            return None
        return str(spec)


STARTS = {"again": "--again", "pilot": "--pilot", "extend": "--extend", "only_failed": "--only-failed"}
"""Fields of a run's request that exclude each other → their flags."""


RUN: Any = setting(
    help="Name or id of the run; the beginning of the id is enough.", argument=True, min_length=1, max_length=64
)


class ShowRequest(OperationRequest):
    """Show the answers of RUN, or every step of one QUESTION: searches, estimates, what was held back, and the answer.

    --out report.html or .md writes a report you can send or print. For one question it has the answer next to market,
    base rate and outcome, and the evidence with sources; for a run, its scores and every question.
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

      foretell runs --find "state:partial model:openai:NAME" --sort cost
    """

    find: str = setting(
        "",
        "Only runs whose name, note, tag, model or questions contain this text. tag:NAME, state:NAME, model:NAME and "
        "set:NAME narrow it further; archived:yes lists archived runs, archived:any all.",
        metavar="TEXT",
        max_length=2000,
    )
    sort: RunOrder = setting(
        "date", "Order: date (newest first), score (best first), cost (highest first) or name (A to Z)."
    )
    limit: int | None = setting(None, "Maximum number of runs.", ge=1)


class RunsEditRequest(OperationRequest):
    """Change the name, tags or note of RUN, or archive it.

    foretell runs edit 3f2a --name autumn --tag reference --note "before the change"
    """

    run: str = RUN
    name: str | None = setting(None, "New name; an empty one removes it.", max_length=80)
    tags: tuple[ShortText, ...] = setting((), "Add this tag; may be repeated.", flag="--tag", metavar="TAG")
    untag: tuple[ShortText, ...] = setting((), "Remove this tag; may be repeated.", metavar="TAG")
    note: str | None = setting(None, "New note; an empty one removes it.", max_length=2000)
    archive: bool | None = setting(
        None, "Hide the run from lists; --archive=no shows it again.", alone="yes", metavar="[no]"
    )
    restore: bool = setting(False, "Bring the run back that was deleted.")


class RunsDeleteRequest(OperationRequest):
    """Delete RUNS with their answers, steps and scores. Needs `--yes`.

    They stay in a bin for 30 days: runs list --find state:deleted, runs edit RUN --restore. Paid model replies and the
    record of submissions are always kept.
    """

    runs: tuple[ShortText, ...] = setting(
        help="Names or ids; the beginning of an id is enough.", argument=True, min_length=1
    )
    yes: bool = setting(False, "Really delete; without it, the runs are only listed.")


class RunsStopRequest(OperationRequest):
    """Stop RUN early and keep its answers so far.

    Trials in progress answer with their current estimate, marked as stopped early. Trials without an estimate stay
    open; `foretell run RUN` continues them. Works from any terminal, whichever process is running it.
    """

    run: str = RUN
    discard: bool = setting(
        False,
        "Record nothing for trials in progress, and take the run out of the queue of the shared database; "
        "`foretell run RUN` continues them.",
    )


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

    If a reply is missing, you get an error that names the request. Nothing is paid. Of a TREE, the notebooks of its
    leaves are run again and their results compared.
    """

    run: str = setting(
        help="Name or id of a run, or a tree's file or name in `foretell tree list`.", argument=True, min_length=1,
        max_length=1000, metavar="RUN|TREE",
    )  # fmt: skip
    dataset: str | None = setting(None, "The questions of a run, if their file has moved.")


class WorkerRequest(OperationRequest):
    """Work on the runs that `foretell run` has queued in the shared database (FORETELL_DATABASE_URL).

    Start as many as you like, on as many machines as you like. If one is killed, the others take over its work and get
    the replies it had received from the journal. Ctrl-C finishes the current work first; press it twice to exit now.
    `workers_concurrency` in settings.toml limits how many trials all workers together run at the same time.
    """

    concurrency: int = setting(50, "How many trials to run at the same time in this worker.", ge=1, le=2000)
    idle: float | None = setting(None, "Exit after this long without work.", metavar="SECONDS", ge=0)
    status: bool = setting(False, "Only show the workers and what is waiting.")


class GridRequest(OperationRequest):
    """Run the experiment in FILE: every combination of settings is one run. Or list experiments, or show the one NAMED.

    It shows the price first; --plan does only that. You can stop it at any time and start it again: it continues and
    pays for nothing twice. At the end it shows the effect of each setting. Studies read the same file, such as
    foretell study variance --grid FILE.

      foretell init grid grid.yaml

      foretell grid grid.yaml --plan
    """

    grid: Path | None = setting(
        None, "A grid (YAML or JSON file) to run, or the name of one to show; none lists them.", argument=True,
        metavar="[FILE|NAME]",
    )  # fmt: skip
    plan: bool = setting(False, "Only show what it would cost.")
    budget: float | None = setting(
        None, "Limit in dollars for all runs together, including earlier starts.", metavar="DOLLARS", gt=0
    )
    where: RunPlace = WHERE
    set: Mapping[str, Any] = setting({}, "Settings that replace those of the base, by name.", interface="api")

    @model_validator(mode="after")
    def _shown_or_run(self) -> Any:
        unused = [f"--{name}" for name in ("plan", "budget", "where", "set") if self._is_set(name)]
        if self.file is None and unused:
            raise InputError(
                "has no effect on an experiment that is only shown", column=unused[0], hint="name its FILE"
            )
        return self

    @property
    def file(self) -> Path | None:
        """The file to run; None for a name."""
        path = self.grid
        return path if path and (path.suffix in (".yaml", ".yml", ".json") or path.is_file()) else None
