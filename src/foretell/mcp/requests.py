"""Requests of tools that combine several operations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from foretell.operations.requests.asking import SET, ShortText
from foretell.operations.requests.trees import TreeChoice
from foretell.request import OperationRequest, setting

RUN: Any = setting(None, "Name or id of a stored run.", min_length=1, max_length=64)


class ListRequest(OperationRequest):
    """What is stored on this machine."""

    kind: Literal["runs", "questions", "trees", "grids", "arenas"] = setting(
        "runs", "What to list; questions are those that are watched."
    )
    find: str = setting("", "Only what contains this text.", max_length=200)
    limit: int = setting(50, "Maximum number.", ge=1, le=500)


class ShowToolRequest(OperationRequest):
    """A run, one of its questions, a tree, or a question that is watched."""

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"run": "question limit replay", "tree": "inputs bias_sd"}
    run: str | None = RUN
    question: str | None = setting(None, "One question of the run, with every step.", max_length=2000)
    limit: int | None = setting(None, "Maximum number of answers, and of steps for each trial.", ge=1)
    replay: bool = setting(False, "Recompute the run from saved replies, and count equal answers.")
    tree: TreeChoice | None = setting(None, "Name of a tree: its claims, and a report on it.")
    inputs: bool = setting(False, "Also how much the answer depends on each input.")
    bias_sd: float = setting(0.0, "Standard deviation of errors that repeat in every trial of a leaf.", ge=0, le=0.5)
    watched: str | None = setting(None, "Id of a question that is watched, or `all` for your record.", max_length=300)


class RunToolRequest(OperationRequest):
    """A run to start, continue, repeat or stop."""

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "spec": "extend",
        "run": "again only_failed stop",
        "stop": "discard",
    }
    spec: Path | dict[str, Any] | None = setting(
        None, "A new run: its settings (questions, models, search, trials, budget, …), or a file of them."
    )
    run: str | None = RUN
    set: Mapping[str, Any] = SET
    again: bool = setting(False, "Repeat it as a new run with the next seed, instead of continuing it.")
    only_failed: bool = setting(False, "Only retry what failed.")
    extend: bool = setting(False, "Add new questions to the run of this spec, instead of starting another.")
    pilot: int | None = setting(None, "Only ask the first questions once, to see whether it works.", ge=1)
    plan: bool = setting(False, "Only return what would be done and what it would cost.")
    stop: bool = setting(False, "Stop it: trials in progress answer with their current estimate.")
    discard: bool = setting(False, "Leave trials in progress unfinished, to be continued.")


class TournamentToolRequest(OperationRequest):
    """A tournament, and what to do in it."""

    ONLY_WITH: ClassVar[Mapping[str, str]] = {
        "action=plan or action=dry_run or action=sandbox": "trials budget limit set",
        "action=results": "by methods",
    }
    tournament: str | None = setting(
        None, "metaculus:SLUG, forecastbench, forecastbench:DATE, prophet-arena:weekly or :live.", max_length=100
    )
    action: Literal["results", "plan", "dry_run", "sandbox"] = setting(
        "results",
        "Scores so far; what is open and its cost; forecasts as they would be sent; a past ForecastBench round.",
    )
    model: str | None = setting(None, "Model, as provider:name.", max_length=300)
    search: tuple[ShortText, ...] = setting((), "Search engines.", max_length=10)
    trials: int | None = setting(None, "Trials per question.", ge=1, le=50)
    budget: float | None = setting(None, "Hard limit in dollars.", gt=0, le=10_000)
    limit: int | None = setting(None, "Maximum number of questions.", ge=1)
    set: Mapping[str, Any] = SET
    by: tuple[str, ...] = setting((), "Also score by these columns, such as source.")
    methods: tuple[str, ...] = setting((), "Files of public ForecastBench methods to compare with.")
