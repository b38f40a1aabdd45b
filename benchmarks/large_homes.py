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
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from fakes.stored_run import StoredRunBuilder
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.scoring.stored_scores import keep_summary
from foretell.web.app import create_app

WARM = 5
OWNER = {"run": "id"} | dict.fromkeys(("question", "cell", "run_outcome", "run_score", "run_combined"), "run")
"""Table → its column with the id of the run; answers without a checksum are those of an older version."""
RUN_ROWS = "select * from run"
ANSWER_ROWS = "select q.body, c.forecast from question q join cell c on c.run = q.run and c.question = q.id"


def _resolve(store: RunStore, run: str, questions: tuple[Question, ...]) -> None:
    outcomes = [
        Resolution(question_id=question.id, target_id="yes", due=question.due, outcome=int(n % 3 == 0))
        for n, question in enumerate(questions)
    ]
    RunOutcomes(store).keep(run, questions, outcomes)


def _many_runs(home: Path, runs: int) -> None:
    """Store one scored run, and copies of it under other ids."""
    with closing(RunStore(home / "runs.db")) as store:
        builder = StoredRunBuilder(questions=2, trials=1, steps=1)
        run = builder.keep(store)
        _resolve(store, run, builder.asked())
    keep_summary(home / "runs.db", run)
    with closing(sqlite3.connect(home / "runs.db")) as con:
        for table in OWNER:
            columns = [column for _, column, *_ in con.execute(f"pragma table_info({table})")]
            kept = ", ".join(column for column in columns if column not in (OWNER[table], "checksum"))
            for number in range(1, runs):
                con.execute(
                    f"insert into {table} ({OWNER[table]}, {kept}) "
                    f"select ?, {kept} from {table} where {OWNER[table]} = ?",
                    (f"{number:012x}", run),
                )
        con.commit()


def _long_run(home: Path, questions: int) -> str:
    with closing(RunStore(home / "runs.db")) as store:
        builder = StoredRunBuilder(questions=questions, trials=3, steps=2)
        run = builder.keep(store)
        _resolve(store, run, builder.asked())
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
