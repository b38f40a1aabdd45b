"""CPU time of the first and of later visits to pages of a large home, compared with the ideal.

    python benchmarks/large_homes.py [RUNS] [QUESTIONS]

One home has many small runs, another has one run of many questions with three trials; both are resolved and scored, as
they are after `foretell run`. Every page is opened by a new process: its first answer is cold, the median of the next
ones warm. *Rows* is the CPU time of reading with plain sqlite3 the rows that the page is about: the table of runs, or
the questions and answers of the run. *Bare* is that of answering the same bytes with Starlette. Targets: the page of
5,000 questions x 3 trials cold in 2 s, and the list of 2,000 runs in 1 s.
"""

import multiprocessing
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.questions.resolution import Resolution
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.runs.stored_rows import answer_checksum
from foretell.scoring.stored_scores import StoredScores, keep_summary
from foretell.web.app import create_app

WARM = 5
RUN_ROWS = "select * from run"
ANSWER_ROWS = "select q.body, c.forecast from question q join cell c on c.run = q.run and c.question = q.id"


def _stored(home: Path, questions: int, trials: int, steps: int) -> str:
    """Store and score a run of few questions, all of which have resolved; return its id."""
    with closing(RunStore(home / "runs.db")) as store:
        builder = StoredRunBuilder(questions=questions, trials=trials, steps=steps)
        run = builder.keep(store)
        outcomes = [
            Resolution(question_id=question.id, target_id="yes", due=question.due, outcome=n % 2)
            for n, question in enumerate(builder.asked())
        ]
        RunOutcomes(store).keep(run, builder.asked(), outcomes)
    keep_summary(home / "runs.db", run)
    return run


def _copy(con: sqlite3.Connection, table: str, before: Mapping[str, str], copies: Sequence[Mapping[str, str]]) -> None:
    """Add copies of the rows of a table that contain a text, such as an id, with other texts instead."""
    columns = [column for _, column, *_ in con.execute(f"pragma table_info({table})") if (table, column) != EVENT_ID]
    marks = ", ".join("?" * len(columns))
    rows = con.execute(f"select {', '.join(columns)} from {table}").fetchall()
    for copy in copies:
        for row in rows:
            values = list(row)
            for name, text in before.items():
                values = [value.replace(text, copy[name]) if isinstance(value, str) else value for value in values]
            if table == "cell":
                values[-1] = answer_checksum(tuple(values))
            con.execute(f"insert or ignore into {table} ({', '.join(columns)}) values ({marks})", values)


EVENT_ID = ("event", "id")


def _many_runs(home: Path, runs: int) -> None:
    run = _stored(home, 2, 1, 1)
    with closing(sqlite3.connect(home / "runs.db")) as con:
        for table in ("run", "question", "cell", "run_outcome", "run_score", "run_combined", "event"):
            _copy(con, table, {"run": run}, [{"run": f"{number:012x}"} for number in range(1, runs)])
        con.commit()
    with closing(RunStore(home / "runs.db")) as store:  # The digests of the copied answers are others.
        StoredScores(store).of(store.runs(), combined=True)


def _long_run(home: Path, questions: int) -> str:
    run = _stored(home, 2, 3, 2)
    with closing(sqlite3.connect(home / "runs.db")) as con:
        # Two questions, with and without the outcome, are copied to all others.
        names = [{"even": f"own/{2 * n:04}", "odd": f"own/{2 * n + 1:04}"} for n in range(1, questions // 2)]
        for table in ("question", "cell", "run_outcome", "event"):
            _copy(con, table, {"even": "own/0000", "odd": "own/0001"}, names)
        con.commit()
    keep_summary(home / "runs.db", run)
    return run


def _cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _visit(home: str, path: str, rows: str) -> tuple[float, float, float, float, int]:
    """Return the CPU seconds of the first visit, of a later one, of reading the rows and of the bare answer."""
    with TestClient(create_app(Settings(home=Path(home))), base_url="http://127.0.0.1") as client:

        def get() -> None:
            answer = client.get(path)
            assert answer.status_code == 200, answer.text[:500]

        cold = _cpu(get)
        warm = statistics.median(_cpu(get) for _ in range(WARM))
        body = client.get(path).content
    bare_app = Starlette(routes=[Route("/", lambda _: Response(body, media_type="text/html"))])
    with TestClient(bare_app, base_url="http://127.0.0.1") as client:
        bare = statistics.median(_cpu(lambda: client.get("/")) for _ in range(WARM))
    with closing(sqlite3.connect(Path(home) / "runs.db")) as con:
        read = statistics.median(_cpu(lambda: con.execute(rows).fetchall()) for _ in range(WARM))
    return cold, warm, read, bare, len(body)


def _measured(*visit: str) -> tuple[float, float, float, float, int]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_visit, visit)


def main(runs: int, questions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        many, long = Path(folder) / "many", Path(folder) / "long"
        _many_runs(many, runs)
        run = _long_run(long, questions)
        asked = f"/runs/{run}/questions/own%2F0000"
        visits = {
            f"home, {runs} runs": (many, "/", RUN_ROWS),
            f"list of {runs} runs": (many, "/runs", RUN_ROWS),
            f"found in {runs} runs": (many, "/runs?find=bridge", RUN_ROWS),
            f"last page of {runs} runs": (many, f"/runs?offset={max(0, runs - 50)}", RUN_ROWS),
            f"API, {runs} runs": (many, "/api/runs?limit=500", RUN_ROWS),
            f"run of {questions} questions x 3": (long, f"/runs/{run}", ANSWER_ROWS),
            "the same, sorted by score": (long, f"/runs/{run}?sort=score", ANSWER_ROWS),
            "a question of it": (long, asked, "select * from event limit 30"),
        }
        print(f"{'page':34} {'cold':>8} {'÷ rows':>7} {'warm':>8} {'÷ rows':>7} {'÷ bare':>7} {'size':>9}")
        for name, (home, path, rows) in visits.items():
            cold, warm, read, bare, size = _measured(str(home), path, rows)
            print(
                f"{name:34} {cold:6.2f} s {cold / read:7.1f} {1000 * warm:5.0f} ms {warm / read:7.1f} "
                f"{warm / bare:7.1f} {size / 1000:6.0f} kB",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, int(sys.argv[2]) if len(sys.argv) > 2 else 5000)
