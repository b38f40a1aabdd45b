"""State shared by all requests: settings, the run store, access rules, and the runs this server started."""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import Depends, HTTPException, Request

from foretell.data.connections import OpenConnections
from foretell.data.service import practice_page
from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.operations.doctor import DoctorResult, doctor
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.requests.setup import DoctorRequest
from foretell.questions.forecast import Cost
from foretell.questions.trace import CallMeter
from foretell.runs.costs import money_of_run
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings, clock_of
from foretell.runs.store import RunRow, RunStore, matching_runs, trials_per_question
from foretell.runs.trial_costs import TrialCosts, measured_costs
from foretell.scoring.run_scores import RunScores, score_run
from foretell.standing.store import StandingStore
from foretell.web.background_runs import BackgroundRuns
from foretell.web.boards import LeaderboardCache, ResultCache
from foretell.web.event_watch import EventWatch
from foretell.web.run_rows import RUNS_PER_PAGE, RunList, RunRowView, list_runs, run_row_view
from foretell.web.security import AccessRules
from foretell.web.tree_work import BackgroundTreeWork

T = TypeVar("T")
WINDOW_SECONDS = 600.0
"""Length in seconds of the period over which the speed of a run is measured."""
FEWEST_SECONDS = 3.0
"""Minimum number of seconds of measurement before the remaining time is estimated."""
CACHED_SCORES = 12
"""Maximum number of runs whose scores are kept in memory."""
CACHED_ANSWERS = 1000
"""Maximum number of runs of one question whose answers are kept in memory."""
CACHED_PARTS = 60
"""Maximum number of page parts kept in memory."""
LEAST_OF_ID = 4
"""Minimum length of the beginning of a run's id that stands for the whole id."""
ROWS_IN_FILE = 1000
"""Number of rows on a page of a list that is written to a file."""
LOOK_SHARE = 20
"""Waiting time before a costly read is repeated, as a multiple of the time the last one took."""


@frozen
class RunTotals:
    """Totals over the events of a run up to event number `upto`: what it cost, and how its trials ended."""

    upto: int = 0
    meter: CallMeter = field(default_factory=CallMeter)
    spending: Cost = field(default_factory=Cost)
    endings: Counter[str] = field(default_factory=Counter[str])


@frozen
class CachedScores:
    """Scores of a run, the state they were computed from, and when they may be recomputed while the run is going on."""

    state: tuple[object, ...]
    again: float
    scores: RunScores


@frozen
class SetupCheck:
    """What `foretell doctor` found, and when."""

    at: datetime
    result: DoctorResult


class WebState:
    """The state of one application. The store is thread-safe, so routes that read it are plain functions."""

    def __init__(self, *, settings: Settings, access: AccessRules) -> None:
        self.settings = settings
        self.access = access
        self.clock = clock_of(settings)
        self.store = RunStore(settings.store)
        self.outcomes = RunOutcomes(self.store)
        self.standing = StandingStore(self.store.database)
        self.jobs = BackgroundRuns(settings)
        self.tree_work = BackgroundTreeWork(settings)
        self.boards = LeaderboardCache(self.store, settings.home / "standings")
        self.cached = ResultCache(CACHED_PARTS).get
        """Cache for the data of run pages."""
        self._answers = ResultCache(CACHED_ANSWERS).get
        self.leaving = threading.Event()
        """Set when the server is about to shut down, so that open streams end."""
        self.watch = EventWatch(self.store, self.over, self.leaving)
        self.connections = OpenConnections()
        self._lock = threading.Lock()
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        """By run: times at which the number of finished trials changed, because the store has no clock times."""
        self._totals: dict[str, RunTotals] = {}
        self._scores: dict[str, CachedScores] = {}
        self._journal: Journal | None = None
        self._checkup: Future[SetupCheck] | None = None

    def close(self) -> None:
        """Stop all background work and close the store and the journal."""
        self.jobs.close()
        self.tree_work.close()
        self.boards.close()
        self.store.close()
        if self._journal is not None:
            self._journal.close()

    def run(self, start: str) -> RunRow:
        """Return the run with this id or name, or the only one whose id starts with it; else raise a 404 error."""

        def look() -> list[RunRow]:
            return matching_runs(self.store, start)

        # Thousands of pages of one run are written to files, and its answers are counted for its row.
        rows = self.while_unchanged(("run", start), look) if self.access.still else look()
        if len(rows) != 1 or (len(start) < LEAST_OF_ID and start not in (rows[0].id, rows[0].name)):
            raise HTTPException(404, f"there is no run {start[:80]!r}")
        return rows[0]

    def rows_per_page(self, usual: int) -> int:
        """Return how many rows a page of a list has; pages written to files have nearly all, as they cannot search."""
        return ROWS_IN_FILE if self.access.still else usual

    def while_unchanged(self, what: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return a result, cached until anything is written to the store; not cached if machines share the database."""
        mark = self.store.database.change_mark()
        return make() if mark is None else self.cached(("unchanged", *what), mark, make)

    def page_of(self, url: str) -> str:
        """Return the address at which a question of a market can be read.

        The questions of practice are made up: their page is on the practice site if it has one.
        """
        return practice_page(url, self.settings.addresses)

    def run_list(self, filters: RunsRequest, *, offset: int = 0, limit: int = RUNS_PER_PAGE) -> RunList:
        """Return part of the list of runs; not cached if one is running, because its process may end without notice."""

        def look() -> RunList:
            return list_runs(self.store, filters, self.dollars, offset=offset, limit=limit)

        runs = self.while_unchanged(("runs", filters.model_dump_json(), offset, limit), look)
        return look() if any(run.state == "running" for run in runs.runs) else runs

    def answered(self, *rows: RunRow) -> tuple[object, ...]:
        """Return a marker of the answers and outcomes that the given runs have so far."""
        outcome_counts = self.while_unchanged(("outcomes",), self.outcomes.count)
        return tuple((row.id, row.done, row.failed, row.fallback, outcome_counts.get(row.id)) for row in rows)

    def scores(self, row: RunRow, *, finished: bool) -> RunScores:
        """Return the scores of a run on resolved questions, recomputed when an answer or an outcome has arrived.

        While a run is going on, they lag behind a little: by up to `LOOK_SHARE` times the time they took to compute.
        """
        state, start = self.answered(row), time.monotonic()
        with self._lock:
            before = self._scores.get(row.id)
        if before is not None and (before.state == state or (not finished and start < before.again)):
            return before.scores
        scores, end = score_run(self.store, row), time.monotonic()
        with self._lock:
            self._scores[row.id] = CachedScores(state=state, again=end + LOOK_SHARE * (end - start), scores=scores)
            while len(self._scores) > CACHED_SCORES:
                self._scores.pop(next(iter(self._scores)))
        return scores

    def only_answer(self, run: RunRowView) -> float | None:
        """Return the answer of a run that asked one question and has no score; None for other runs."""
        if run.questions != 1 or not run.done or run.score.get("brier_index"):
            return None

        def make() -> float | None:
            row = self.store.run(run.id)
            return None if row is None else self.scores(row, finished=run.finished).answers[0].leading.p

        return self._answers((run.id,), self.answered(run), make)

    def seconds_left(self, run: RunRowView) -> float | None:
        """Estimate the seconds until the run is finished from its recent speed; None if that is not known yet."""
        now, done = time.monotonic(), run.done + run.failed
        with self._lock:
            counts = self._seen.setdefault(run.id, deque())
            if not counts or counts[-1][1] != done:
                counts.append((now, done))
            while len(counts) > 2 and now - counts[0][0] > WINDOW_SECONDS:
                counts.popleft()
            began, done_at_first = counts[0]
        gained, passed = done - done_at_first, now - began
        if run.finished or gained <= 0 or passed < FEWEST_SECONDS:
            return None
        return (run.total - done) * passed / gained

    def dollars(self, runs: Iterable[str]) -> dict[str, float]:
        """Return what runs were billed so far."""
        return {run: money.billed for run, money in self.money_of(runs).items()}

    def totals(self, run: str) -> RunTotals:
        """Return the calls of a run's trials and how they ended; each event is read only once."""
        with self._lock:
            newest = self.store.last_event()
            before = self._totals.get(run, RunTotals())
            if before.upto > newest:  # A trial was started again and its events were deleted.
                before = RunTotals()
            if before.upto < newest:
                new = {"after": before.upto, "upto": newest}
                self.store.meter_calls(run, before.meter, **new)
                endings = before.endings + self.store.endings(run, **new)
                before = RunTotals(upto=newest, meter=before.meter, spending=before.meter.cost, endings=endings)
            self._totals[run] = before
            return before

    def measured_costs(self) -> TrialCosts:
        """Return the measured cost and duration of trials here by what determines them; updated when a trial ends."""
        trial_counts = tuple(
            (row.id, row.done, row.failed) for row in self.while_unchanged(("every run",), self.store.runs)
        )
        return self.cached(("costs",), trial_counts, lambda: measured_costs(self.store))

    def money(self, run: str) -> Money:
        """Return what a run has cost so far, and what it may still have to pay."""
        return self.money_of([run])[run]

    def money_of(self, runs: Iterable[str]) -> dict[str, Money]:
        """Return what runs have cost so far: billed according to the ledger, and reused."""
        named = list(runs)
        with self._lock:
            journal = self._open_journal()
        money = {} if journal is None else journal.ledger.money_of(named)
        return {run: money_of_run(self.totals(run).spending, money.get(run)) for run in named}

    def lost_replies(self, run: str) -> int:
        """Return how many replies of a run were lost and may have been billed."""
        with self._lock:
            journal = self._open_journal()
        return 0 if journal is None else journal.ledger.lost_calls(run)

    def checkup(self, *, again: bool = False) -> Future[SetupCheck]:
        """Return the check of the set-up that is under way or was made before; else begin one in the background."""
        with self._lock:
            check = self._checkup
            if check is None or (again and check.done()):
                self._checkup = check = Future[SetupCheck]()
                threading.Thread(target=self._check_setup, args=(check,), name="doctor", daemon=True).start()
            return check

    def _check_setup(self, check: Future[SetupCheck]) -> None:
        try:
            result = asyncio.run(doctor(DoctorRequest(), self.settings))
        except Exception as error:  # Passed on to whoever asks for the result.
            check.set_exception(error)
        else:
            check.set_result(SetupCheck(at=datetime.now(UTC), result=result))

    def _open_journal(self) -> Journal | None:
        if self._journal is None and (self.settings.database or Path(self.settings.journal).is_file()):
            self._journal = Journal(self.settings.journal)
        return self._journal

    def over(self, run: str, question: str | None = None) -> bool:
        """Whether a run or question is over: all trials have ended, or this server ended the run."""
        row = self.store.run(run)
        if row is None:
            return True
        if question is not None:
            ended, questions = self.store.ended_trials(run, question)
            if ended >= questions * trials_per_question(row.spec):
                return True
        background = self.jobs.of(run)
        if background is not None:
            return background.state != "running"
        return run_row_view(self.store, row).finished


def _state_of(request: Request) -> WebState:
    return request.app.state.serving


CurrentState = Annotated[WebState, Depends(_state_of)]
"""Parameter of every route that needs the store or the settings."""
