"""Experiments as files: estimate the cost of a grid, carry out its runs, and show the effect of each factor."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console

from foretell.data.files import write_atomically
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.operations.requests.runs import GridRequest
from foretell.operations.result import Result, show_table
from foretell.operations.run import carry_out
from foretell.operations.run_plan import prepared_cell_cost
from foretell.operations.runs import measured_costs, money_of
from foretell.operations.studies import run_study
from foretell.operations.table import operation
from foretell.questions.errors import InputError
from foretell.report.numbers import bracket
from foretell.report.provenance import Provenance
from foretell.report.study import StudyResult
from foretell.report.terminal import TextColumn, show_text
from foretell.runs.executor import RunProgress
from foretell.runs.grid import Grid, GridRun, read_grid
from foretell.runs.runner import (
    PreparedRun,
    WatchProgress,
    check_options,
    check_run,
    find_run_of,
    has_panel,
    prepare_run,
)
from foretell.runs.runtime import run_budget
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunRow, RunStore, cells_each
from foretell.scoring.long_tables import StoredScores
from foretell.studies.inputs import load_study

STUDY = "ablation"
"""The study that shows the effect of each factor."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """The state of a run in a grid: what is done, what is open, and what the rest will cost."""

    name: str
    run: str
    factors: Mapping[str, str]
    cells: int
    done: int
    money: Money
    """What it has cost so far."""
    per_cell: float | None
    """Dollars; None if no price is known."""
    basis: str
    """Where the price comes from: measured, rough or unknown."""

    @property
    def dollars(self) -> float | None:
        """The cost of the open cells."""
        open_cells = self.cells - self.done
        return 0.0 if not open_cells else None if self.per_cell is None else open_cells * self.per_cell


@dataclass(frozen=True, kw_only=True)
class GridResult(Result):
    """A grid: its plan and, after it was carried out, its results."""

    name: str
    planned: tuple[PlannedRun, ...]
    budget: float | None
    ended: Mapping[str, RunProgress]
    """Run → how it ended this time; empty for a plan."""
    study: StudyResult | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """3 if an answer is missing or rests on a failure."""
        return 3 if any(one.failed or one.degraded or one.stopped for one in self.ended.values()) else 0

    @cached_property
    def money(self) -> Money:
        """What it cost this time."""
        return sum((one.money for one in self.ended.values()), Money())

    @cached_property
    def expected(self) -> float:
        """The cost of all open cells, as far as prices are known."""
        return sum(one.dollars or 0.0 for one in self.planned)

    @property
    def most(self) -> float | None:
        """The most that can still be billed; None without a budget."""
        used = sum(one.money.used for one in self.planned)
        return None if self.budget is None else max(0.0, round(self.budget - used, 9))

    def rows(self) -> list[dict[str, Any]]:
        """One row per run, with its factors."""
        return [
            {
                "name": one.name,
                "run": one.run,
                **one.factors,
                "cells": one.cells,
                "done": one.done,
                **one.money.to_dict(),
                "dollars_to_come": None if one.dollars is None else round(one.dollars, 9),
                "basis": one.basis,
            }
            for one in self.planned
        ]

    def to_dict(self) -> dict[str, Any]:
        """The plan, the money and the tables."""
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
        """The tables as Markdown, or the text of a plan."""
        return self.study.to_markdown() if self.study is not None else f"{self}\n\n{Provenance.now().to_markdown()}"

    def to_html(self) -> str:
        """The tables as a page."""
        if self.study is None:
            raise InputError("a plan has no page", hint="write .json, .csv or .md, or carry the grid out")
        return self.study.to_html()

    def print(self, console: Console) -> None:
        """The tables, or the plan."""
        if self.study is not None:
            self.study.print(console)
            return
        columns: dict[TextColumn, Callable[[PlannedRun], object]] = {
            TextColumn(head="run", drop=2): lambda one: one.run,
            TextColumn(head="levels", shrink=24): lambda one: one.name,
            TextColumn(head="cells", right=True): lambda one: f"{one.cells:,}",
            TextColumn(head="done", right=True): lambda one: f"{one.done:,}",
            TextColumn(head="$ billed", right=True, drop=1): lambda one: f"{one.money.billed:.2f}",
            TextColumn(head="$ to come", right=True): lambda one: "?" if one.dollars is None else f"{one.dollars:.2f}",
            TextColumn(head="basis"): lambda one: one.basis,
        }
        show_table(console, self.planned, columns)
        show_text(console, f"{self.summary}\n")

    @property
    def summary(self) -> str:
        """What is left to do and what it costs, in one line."""
        cells = sum(one.cells - one.done for one in self.planned)
        unknown = sum(one.dollars is None for one in self.planned)
        told = f"{len(self.planned)} runs, {cells:,} cells open, about ${self.expected:.2f} to come"
        told += f" and {unknown} runs whose price nobody knows" if unknown else ""
        return f"{told}; " + (f"at most ${self.most:.2f}" if self.most is not None else "no budget is set")


# Cost.


def plan_grid(
    runs: Sequence[GridRun], prepared: Mapping[str, PreparedRun], settings: Settings
) -> tuple[PlannedRun, ...]:
    """The state of every run, with the cost of the rest by similar runs on this machine or a rough guess."""
    with closing(RunStore(settings.store)) as store:
        measured = measured_costs(store)
        money = money_of(store, settings, [prepared[run.name].spec.id for run in runs])
        planned: list[PlannedRun] = []
        for run in runs:
            one = prepared[run.name]
            known = store.run(one.spec.id) is not None
            done = len(store.finished(one.spec.id)) if known else 0
            cost = prepared_cell_cost(one, measured)
            planned.append(
                PlannedRun(
                    name=run.name,
                    run=one.spec.id,
                    factors=run.factors,
                    cells=len(one.questions) * one.spec.trials,
                    done=done,
                    money=money[one.spec.id],
                    per_cell=cost.dollars,
                    basis=cost.basis,
                )
            )
    return tuple(planned)


# Grids on this machine, with the scores of their runs.


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One combination of settings: its run with progress, score and cost."""

    name: str
    run: str
    factors: Mapping[str, str]
    state: str
    """The state of its run; `removed` if that is gone."""
    cells: int
    done: int
    brier_index: Mapping[str, float] | None
    """Brier index with low and high; None before two questions have resolved."""
    money: Money


@dataclass(frozen=True, kw_only=True)
class StoredGrid:
    """A grid that was run on this machine."""

    name: str
    file: str
    cells: tuple[GridCell, ...]

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors, in the order of the file."""
        return tuple(dict.fromkeys(name for cell in self.cells for name in cell.factors))

    @property
    def finding(self) -> str:
        """The best combination so far, in a sentence."""
        scored = sorted((cell for cell in self.cells if cell.brier_index), key=_index, reverse=True)
        if not scored:
            return "No combination has a score yet: a score needs two resolved questions."
        best = scored[0]
        text = f"Best so far: {best.name} with a Brier index of {_index(best):.1f}"
        if len(scored) > 1:
            text += f", {_index(best) - _index(scored[-1]):.1f} above the worst, {scored[-1].name}"
        return f"{text}. Whether a setting makes a difference beyond chance: foretell study ablation --grid FILE."


def _index(cell: GridCell) -> float:
    return cell.brier_index["estimate"] if cell.brier_index else -inf


@dataclass(frozen=True, kw_only=True)
class GridList(Result):
    """The grids that were run on this machine, with their runs."""

    grids: tuple[StoredGrid, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per combination of settings."""
        return [
            {
                "grid": grid.name,
                **cell.factors,
                "run": cell.run,
                "state": cell.state,
                "done": cell.done,
                "cells": cell.cells,
                **{
                    f"brier_index_{end}" if end != "estimate" else "brier_index": (cell.brier_index or {}).get(end)
                    for end in ENDS
                },
                **cell.money.to_dict(),
            }
            for grid in self.grids
            for cell in grid.cells
        ]

    def to_dict(self) -> dict[str, Any]:
        """Every grid with its finding and its cells."""
        return {
            "grids": [
                {
                    "name": grid.name,
                    "file": grid.file,
                    "finding": grid.finding,
                    "factors": list(grid.factors),
                    "cells": [asdict(cell) for cell in grid.cells],
                }
                for grid in self.grids
            ]
        }

    def print(self, console: Console) -> None:
        """A table and a sentence per grid."""
        if not self.grids:
            show_text(console, f"{NO_GRIDS}\n")
        for grid in self.grids:
            show_text(console, f"{grid.name} ({grid.file})\n")
            columns: dict[TextColumn, Callable[[GridCell], object]] = {
                TextColumn(head="settings", shrink=24): lambda one: one.name,
                TextColumn(head="state"): lambda one: one.state,
                TextColumn(head="done", right=True): lambda one: f"{one.done:,} of {one.cells:,}",
                TextColumn(head="Brier index", right=True): _index_text,
                TextColumn(head="$ billed", right=True): lambda one: f"{one.money.billed:.2f}",
                TextColumn(head="run", drop=1): lambda one: one.run,
            }
            show_table(console, grid.cells, columns)
            show_text(console, f"{grid.finding}\n")


def _index_text(cell: GridCell) -> str:
    return (
        f"{cell.brier_index['estimate']:.1f} {bracket(cell.brier_index['low'], cell.brier_index['high'], 1)}"
        if cell.brier_index
        else "–"
    )


def list_grids(settings: Settings, name: str | None = None) -> GridList:
    """Return the grids on this machine, or the one with this name, with state, score and cost of every run.

    Raises InputError if there is none of that name.
    """
    paths = sorted((settings.home / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    written = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if name:
        written = [one for one in written if one["name"] == name]
        if not written:
            raise InputError(
                f"there is no grid {name!r}", hint="foretell grid lists them; a file ends in .yaml or .json"
            )
    if not written:
        return GridList(grids=())
    with closing(RunStore(settings.store)) as store:
        asked = store.asked()
        rows = {
            run: row for one in written for cell in one["cells"] if (row := store.run(run := cell["run"])) is not None
        }
        scores, money = StoredScores(store).of(list(rows.values())), money_of(store, settings, list(rows))
        grids = tuple(
            StoredGrid(
                name=one["name"],
                file=one["file"],
                cells=tuple(
                    _cell(store, cell, rows.get(cell["run"]), scores.get(cell["run"], {}), asked, money)
                    for cell in one["cells"]
                ),
            )
            for one in written
        )
    return GridList(grids=grids)


def _cell(
    store: RunStore,
    cell: Mapping[str, Any],
    row: RunRow | None,
    score: Mapping[str, Any],
    asked: Mapping[str, int],
    money: Mapping[str, Money],
) -> GridCell:
    questions = asked.get(cell["run"], 0)
    return GridCell(
        name=cell["name"],
        run=cell["run"],
        factors=cell["factors"],
        state="removed" if row is None else store.state(row, questions),
        cells=0 if row is None else questions * cells_each(row.spec),
        done=0 if row is None else row.done,
        brier_index=score.get("brier_index"),
        money=Money() if row is None else money[row.id],
    )


def _save(settings: Settings, grid: Grid, planned: Sequence[PlannedRun]) -> None:
    """Record the runs of a grid for its page and `foretell grid NAME`, replacing an earlier record."""
    cells = [{"name": one.name, "run": one.run, "factors": dict(one.factors)} for one in planned]
    body = {"name": grid.name, "file": str(grid.path), "cells": cells}
    path = settings.home / FOLDER / f"{quote(grid.name, safe='')[:150]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(body, ensure_ascii=False, indent=1).encode())


# Running one.


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
        return list_grids(settings, None if request.grid is None else str(request.grid))
    file = request.file
    grid = read_grid(file)
    runs = grid.runs()
    prepared = {run.name: prepare_grid_run(run, grid, settings, plan=request.plan) for run in runs}
    budget = request.budget if request.budget is not None else grid.budget
    planned = plan_grid(runs, prepared, settings)
    result = GridResult(name=grid.name, planned=planned, budget=budget, ended={})
    if request.plan:
        return result
    unknown = any(one.dollars is None for one in planned)
    if budget is None and (result.expected > 0 or unknown):
        hint = "write budget: DOLLARS into the file, or say --budget; --plan shows every run"
        raise InputError(f"this may cost money: {result.summary}", path=file, column="budget", hint=hint)
    _save(settings, grid, planned)
    tell(result.summary)
    within = settings
    if budget is not None:
        # What these runs have cost so far counts: the budget is for the whole experiment, not for one start.
        around = Budget("grid", dollars=budget, within=settings.budget, id=f"grid {grid.name}")
        within = replace(settings, budget=around)
        _open_accounts(within, [one.spec for one in prepared.values()])
    ended: dict[str, RunProgress] = {}
    complete = {plan.name for plan in planned if plan.done == plan.cells and not has_panel(prepared[plan.name].spec)}
    for number, run in enumerate(runs, 1):
        one = prepared[run.name]
        if run.name in complete:
            continue
        tell(f"{number} of {len(runs)}, {run.name}: run {one.spec.id}, {len(one.questions)} questions")
        ended[run.name] = await carry_out(one, within, where=request.where, watch=watch, tell=tell)
    study, notes = _results(file, settings)
    return replace(result, planned=plan_grid(runs, prepared, settings), ended=ended, study=study, notes=notes)


def _open_accounts(settings: Settings, runs: Iterable[RunSpec]) -> None:
    """Put the accounts of the runs into that of their grid, where every process that works on them finds it."""
    with closing(Journal(settings.journal)) as journal:
        for spec in runs:
            run_budget(spec, journal, settings).open()


def prepare_grid_run(run: GridRun, grid: Grid, settings: Settings, *, plan: bool = False) -> PreparedRun:
    """A run of a grid, checked before anything is stored; files are looked up here and beside the grid.

    A plan checks no keys, so that its cost can be seen without any.
    """
    try:
        if plan:
            check_options(run.spec)
        else:
            check_run(run.spec, settings)
    except InputError as error:
        raise InputError(f"{run.name}: {error}", path=grid.path) from None
    prepared = prepare_run(run.spec, folders=(Path(), grid.path.parent))
    with closing(RunStore(settings.store)) as store:
        return find_run_of(store, prepared, extend=False)


grid = operation(GridRequest)(run_grid)


def _results(file: Path, settings: Settings) -> tuple[StudyResult | None, tuple[str, ...]]:
    study = load_study(STUDY)
    try:
        return run_study(study, study.options.read({"grid": file}), settings=settings), ()
    except InputError as error:
        return None, (f"no tables yet: {error}",)


FOLDER = "grids"
ENDS = ("estimate", "low", "high")
NO_GRIDS = "You have not run an experiment yet: foretell init grid writes a file to start from."
