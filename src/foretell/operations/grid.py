"""Experiments as files: estimate the cost of a grid, carry out its runs, and show the effect of each factor."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rich.console import Console

from foretell.data.files import write_atomically
from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.number_text import bracket, dollars
from foretell.operations.requests.runs import GridRequest
from foretell.operations.run import carry_out
from foretell.questions.errors import InputError
from foretell.report.provenance import Provenance
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.costs import money_of
from foretell.runs.executor import RunProgress
from foretell.runs.grid import Grid, GridRun, read_grid
from foretell.runs.runner import PreparedRun, WatchProgress, find_run_of, has_panel, prepare_run
from foretell.runs.runtime import run_budget
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunRow, RunStore, trials_per_question
from foretell.runs.stored_runs import check_start
from foretell.runs.trial_costs import measured_costs, prepared_trial_cost
from foretell.scoring.stored_scores import StoredScores

if TYPE_CHECKING:
    from foretell.report.study_result import StudyResult

STUDY = "ablation"
"""The study that shows the effect of each factor."""


@frozen
class PlannedRun:
    """The state of a run in a grid: what is done, what is open, and what the rest will cost."""

    name: str
    run: str
    factors: Mapping[str, str]
    trials: int
    done: int
    money: Money
    """What it has cost so far."""
    per_trial: float | None
    """Dollars; None if no price is known."""
    basis: str
    """The basis of the price: measured, rough or unknown."""

    @property
    def dollars(self) -> float | None:
        """The cost of the open trials."""
        open_trials = self.trials - self.done
        return 0.0 if not open_trials else None if self.per_trial is None else open_trials * self.per_trial


@frozen
class GridResult(Result):
    """A grid: its plan and, after it was carried out, its results."""

    name: str
    planned: tuple[PlannedRun, ...]
    budget: float | None
    ended: Mapping[str, RunProgress]
    """Run → how it ended this time; empty for a plan."""
    study: "StudyResult | None" = None
    notes: tuple[str, ...] = ()
    stored: "StoredGrid | None" = None
    """The runs on this machine with state, score and cost; None for a plan. A grid opened by its name has only this."""

    @property
    def exit_code(self) -> int:
        """3 if an answer is missing or is a fallback."""
        return (
            3
            if any(progress.failed or progress.fallback or progress.stopped for progress in self.ended.values())
            else 0
        )

    @cached_property
    def money(self) -> Money:
        """What it cost this time."""
        return sum((progress.money for progress in self.ended.values()), Money())

    @cached_property
    def expected(self) -> float:
        """The cost of all open trials, as far as prices are known."""
        return sum(run.dollars or 0.0 for run in self.planned)

    @property
    def most(self) -> float | None:
        """The most that can still be billed; None without a budget."""
        used = sum(run.money.used for run in self.planned)
        return None if self.budget is None else max(0.0, round(self.budget - used, 9))

    @property
    def _listed(self) -> "GridList | None":
        """The grid as it is listed, if it was only named."""
        return None if self.stored is None or self.planned else GridList(grids=(self.stored,))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run, with its factors."""
        if self._listed is not None:
            return self._listed.rows()
        return [
            {
                "name": run.name,
                "run": run.run,
                **run.factors,
                "trials": run.trials,
                "done": run.done,
                **run.money.to_dict(),
                "dollars_to_come": None if run.dollars is None else round(run.dollars, 9),
                "basis": run.basis,
            }
            for run in self.planned
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan, the money and the tables."""
        if self._listed is not None:
            return self._listed.to_dict()
        return {
            "schema": "foretell/grid/1",
            "name": self.name,
            "runs": self.rows(),
            "dollars_to_come": round(self.expected, 9),
            **self.money.to_dict(),
            "budget": self.budget,
            "most": self.most,
            "study": None if self.study is None else self.study.to_dict(),
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """Return the tables as Markdown, or the text of a plan."""
        return self.study.to_markdown() if self.study is not None else f"{self}\n\n{Provenance.now().to_markdown()}"

    def to_html(self) -> str:
        """Return the tables as a page."""
        if self.study is None:
            raise InputError("a grid has no page until it is run", hint="write .json, .csv or .md, or run its file")
        return self.study.to_html()

    def print(self, console: Console) -> None:
        """Print the tables, or the plan."""
        if self._listed is not None:
            self._listed.print(console)
            return
        if self.study is not None:
            self.study.print(console)
            return
        columns: dict[TextColumn, Callable[[PlannedRun], object]] = {
            TextColumn(head="run", drop=2): lambda run: run.run,
            TextColumn(head="levels", shrink=24): lambda run: run.name,
            TextColumn(head="trials", right=True): lambda run: f"{run.trials:,}",
            TextColumn(head="done", right=True): lambda run: f"{run.done:,}",
            TextColumn(head="billed", right=True, drop=1): lambda run: dollars(run.money.billed),
            TextColumn(head="to come", right=True): lambda run: "?" if run.dollars is None else dollars(run.dollars),
            TextColumn(head="basis"): lambda run: run.basis,
        }
        show_table(console, self.planned, columns)
        show_text(console, f"{self.summary}\n")

    @property
    def summary(self) -> str:
        """What is left to do and what it costs, in one line."""
        trials = sum(run.trials - run.done for run in self.planned)
        unknown = sum(run.dollars is None for run in self.planned)
        text = f"{len(self.planned)} runs, {trials:,} trials open, about {dollars(self.expected)} to come"
        text += f" and {unknown} runs of unknown price" if unknown else ""
        return f"{text}; " + (f"at most {dollars(self.most)}" if self.most is not None else "no budget is set")


# Cost.


def plan_grid(
    runs: Sequence[GridRun], prepared: Mapping[str, PreparedRun], settings: Settings
) -> tuple[PlannedRun, ...]:
    """Return the state of every run, with the cost of the rest by similar runs on this machine or a rough guess."""
    with closing(RunStore(settings.store)) as store:
        measured = measured_costs(store)
        money = money_of(store, settings, [prepared[run.name].spec.id for run in runs])
        planned: list[PlannedRun] = []
        for run in runs:
            prepared_run = prepared[run.name]
            cost = prepared_trial_cost(prepared_run, measured)
            planned.append(
                PlannedRun(
                    name=run.name,
                    run=prepared_run.spec.id,
                    factors=run.factors,
                    trials=len(prepared_run.questions) * prepared_run.spec.trials,
                    done=len(store.finished(prepared_run.spec.id)),
                    money=money[prepared_run.spec.id],
                    per_trial=cost.dollars,
                    basis=cost.basis,
                )
            )
    return tuple(planned)


# Grids on this machine, with the scores of their runs.


@frozen
class GridRow:
    """One combination of settings: its run with progress, score and cost."""

    name: str
    run: str
    factors: Mapping[str, str]
    state: str
    """The state of its run; `removed` if that is gone."""
    trials: int
    done: int
    brier_index: Mapping[str, float] | None
    """Brier index with low and high; None before two questions have resolved."""
    money: Money


@frozen
class StoredGrid:
    """A grid that was run on this machine."""

    name: str
    file: str
    runs: tuple[GridRow, ...]

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors, in the order of the file."""
        return tuple(dict.fromkeys(name for row in self.runs for name in row.factors))

    @property
    def finding(self) -> str:
        """The best combination so far, in a sentence."""
        scored = sorted((row for row in self.runs if row.brier_index), key=_index, reverse=True)
        if not scored:
            return "No combination has a score yet: a score needs two resolved questions."
        best = scored[0]
        text = f"Best so far: {best.name} with a Brier index of {_index(best):.1f}"
        if len(scored) > 1:
            text += f", {_index(best) - _index(scored[-1]):.1f} above the worst, {scored[-1].name}"
        return f"{text}. To test what each setting changes, run foretell study ablation --grid FILE."


def _index(row: GridRow) -> float:
    return row.brier_index["estimate"] if row.brier_index else -inf


@frozen
class GridList(Result):
    """The grids that were run on this machine, with their runs."""

    grids: tuple[StoredGrid, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per combination of settings."""
        return [
            {
                "grid": grid.name,
                **row.factors,
                "run": row.run,
                "state": row.state,
                "done": row.done,
                "trials": row.trials,
                **{
                    f"brier_index_{end}" if end != "estimate" else "brier_index": (row.brier_index or {}).get(end)
                    for end in ENDS
                },
                **row.money.to_dict(),
            }
            for grid in self.grids
            for row in grid.runs
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return every grid with its finding and its runs."""
        return {
            "grids": [
                {
                    "name": grid.name,
                    "file": grid.file,
                    "finding": grid.finding,
                    "factors": list(grid.factors),
                    "runs": [asdict(row) for row in grid.runs],
                }
                for grid in self.grids
            ]
        }

    def print(self, console: Console) -> None:
        """Print a table and a sentence per grid."""
        if not self.grids:
            show_text(console, f"{NO_GRIDS}\n")
        for grid in self.grids:
            show_text(console, f"{grid.name} ({grid.file})\n")
            columns: dict[TextColumn, Callable[[GridRow], object]] = {
                TextColumn(head="settings", shrink=24): lambda row: row.name,
                TextColumn(head="state"): lambda row: row.state,
                TextColumn(head="done", right=True): lambda row: f"{row.done:,} of {row.trials:,}",
                TextColumn(head="Brier index", right=True): _index_text,
                TextColumn(head="billed", right=True): lambda row: dollars(row.money.billed),
                TextColumn(head="run", drop=1): lambda row: row.run,
            }
            show_table(console, grid.runs, columns)
            show_text(console, f"{grid.finding}\n")


def _index_text(row: GridRow) -> str:
    return (
        f"{row.brier_index['estimate']:.1f} {bracket(row.brier_index['low'], row.brier_index['high'], 1)}"
        if row.brier_index
        else "–"
    )


def list_grids(settings: Settings, name: str | None = None) -> GridList:
    """Return the grids on this machine, or the one with this name, with state, score and cost of every run.

    Raises InputError if there is none of that name.
    """
    paths = sorted((settings.home / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    saved_grids = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if name:
        saved_grids = [grid for grid in saved_grids if grid["name"] == name]
        if not saved_grids:
            raise InputError(
                f"there is no grid {name!r}", hint="foretell grid lists them; a file ends in .yaml or .json"
            )
    if not saved_grids:
        return GridList(grids=())
    with closing(RunStore(settings.store)) as store:
        question_counts = store.question_counts()
        rows = {
            run: row
            for grid in saved_grids
            for saved in grid["cells"]
            if (row := store.run(run := saved["run"])) is not None
        }
        scores, money = StoredScores(store).of(list(rows.values())), money_of(store, settings, list(rows))
        grids = tuple(
            StoredGrid(
                name=grid["name"],
                file=grid["file"],
                runs=tuple(
                    _grid_row(
                        store, saved, rows.get(saved["run"]), scores.get(saved["run"], {}), question_counts, money
                    )
                    for saved in grid["cells"]
                ),
            )
            for grid in saved_grids
        )
    return GridList(grids=grids)


def _grid_row(
    store: RunStore,
    saved: Mapping[str, Any],
    row: RunRow | None,
    score: Mapping[str, Any],
    question_counts: Mapping[str, int],
    money: Mapping[str, Money],
) -> GridRow:
    questions = question_counts.get(saved["run"], 0)
    row = None if row is None or row.deleted else row
    return GridRow(
        name=saved["name"],
        run=saved["run"],
        factors=saved["factors"],
        state="removed" if row is None else store.state(row, questions),
        trials=0 if row is None else questions * trials_per_question(row.spec),
        done=0 if row is None else row.done,
        brier_index=score.get("brier_index"),
        money=Money() if row is None else money[row.id],
    )


def _save(settings: Settings, grid: Grid, planned: Sequence[PlannedRun]) -> None:
    """Record the runs of a grid for its page and `foretell grid NAME`, replacing an earlier record."""
    runs = [{"name": run.name, "run": run.run, "factors": dict(run.factors)} for run in planned]
    body = {"name": grid.name, "file": str(grid.path), "cells": runs}
    path = settings.home / FOLDER / f"{quote(grid.name, safe='')[:150]}.json"
    write_atomically(path, json.dumps(body, ensure_ascii=False, indent=1).encode())


# Running a grid.


async def run_grid(
    request: GridRequest,
    settings: Settings | None = None,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> GridResult | GridList:
    """Run a grid, or with `plan` estimate its cost; for a name or nothing, show the grids that were run.

    You can stop it and start it again: it continues where it stopped and pays for nothing twice.
    """
    settings = settings or load_settings()
    if request.file is None:
        return list_grids(settings) if request.grid is None else _stored_grid(settings, str(request.grid))
    file = request.file
    grid = read_grid(file, request.set)
    runs = grid.runs()
    prepared = {run.name: prepare_grid_run(run, grid, settings, plan=request.plan) for run in runs}
    budget = request.budget if request.budget is not None else grid.budget
    planned = plan_grid(runs, prepared, settings)
    result = GridResult(name=grid.name, planned=planned, budget=budget, ended={})
    if request.plan:
        return result
    unknown = any(plan.dollars is None for plan in planned)
    if budget is None and (result.expected > 0 or unknown):
        hint = "write budget: DOLLARS into the file, or pass --budget; --plan shows every run"
        raise InputError(f"this may cost money: {result.summary}", path=file, column="budget", hint=hint)
    _save(settings, grid, planned)
    tell(result.summary)
    within = settings
    if budget is not None:
        # The budget is for the whole experiment, so the cost of its runs so far counts.
        around = Budget("grid", dollars=budget, within=settings.budget, id=f"grid {grid.name}")
        within = replace(settings, budget=around)
        _open_accounts(within, [prepared_run.spec for prepared_run in prepared.values()])
    ended: dict[str, RunProgress] = {}
    complete = {plan.name for plan in planned if plan.done == plan.trials and not has_panel(prepared[plan.name].spec)}
    for number, run in enumerate(runs, 1):
        prepared_run = prepared[run.name]
        if run.name in complete:
            continue
        tell(
            f"{number} of {len(runs)}, {run.name}: run {prepared_run.spec.id}, {len(prepared_run.questions)} questions"
        )
        ended[run.name] = await carry_out(prepared_run, within, where=request.where, watch=watch, tell=tell)
    study, notes = _results(grid, settings)
    stored = list_grids(settings, grid.name).grids[0]
    planned = plan_grid(runs, prepared, settings)
    return replace(result, planned=planned, ended=ended, study=study, notes=notes, stored=stored)


def _stored_grid(settings: Settings, name: str) -> GridResult:
    """Return the grid with this name as it is on this machine."""
    stored = list_grids(settings, name).grids[0]
    return GridResult(name=name, planned=(), budget=None, ended={}, stored=stored)


def _open_accounts(settings: Settings, runs: Iterable[RunSpec]) -> None:
    """Open the accounts of the runs within the account of their grid, so that all processes share its budget."""
    with closing(Journal(settings.journal)) as journal:
        for spec in runs:
            run_budget(spec, journal, settings).open()


def prepare_grid_run(run: GridRun, grid: Grid, settings: Settings, *, plan: bool = False) -> PreparedRun:
    """Return a run of a grid, checked before anything is stored; files are looked up here and next to the grid.

    A plan checks no keys, so that its cost can be seen without any.
    """
    try:
        check_start(run.spec, settings, plan=plan)
    except InputError as error:
        raise InputError(f"{run.name}: {error}", path=grid.path) from None
    prepared = prepare_run(run.spec, folders=(Path(), grid.path.parent))
    with closing(RunStore(settings.store)) as store:
        return find_run_of(store, prepared, extend=False)


def _results(grid: Grid, settings: Settings) -> "tuple[StudyResult | None, tuple[str, ...]]":
    from foretell.operations.studies import grid_data, run_study  # The tables of runs that have answered.
    from foretell.studies.inputs import load_study

    study = load_study(STUDY)
    options = study.options.read({"grid": grid.path})
    try:
        return run_study(study, options, inputs=grid_data(settings, grid, options)), ()
    except InputError as error:
        return None, (f"no tables yet: {error}",)


FOLDER = "grids"
ENDS = ("estimate", "low", "high")
NO_GRIDS = "You have not run an experiment yet: foretell init grid writes a file to start from."
