"""A run is identified by its spec and its questions: other questions in a file of the same name are another run."""

import csv
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foretell import run
from foretell.api import list_runs, replay
from foretell.data.datasets.question_set import questions_digest
from foretell.models.journal import Journal
from foretell.operations.run import RunResult
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Snapshot, Target
from foretell.runs.question_sets import questions_of_run
from foretell.runs.runner import find_run_of, match_questions, prepare_run
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec, spec_from_json, spec_from_mapping
from foretell.runs.store import RunStore
from foretell.runs.stored_runs import resume

SPEC = {"questions": "questions.csv", "forecaster": "always"}
RAIN = {"id": "rain", "text": "Will it rain?", "due": "2026-01-05", "by": "2026-01-10"}
SNOW = {"id": "snow", "text": "Will it snow?", "due": "2026-01-05", "by": "2026-01-10"}
HAIL = {"id": "hail", "text": "Will it hail?", "due": "2026-01-05", "by": "2026-01-10"}


class Project:
    """A folder with a spec and its questions."""

    def __init__(self, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch
        self.settings = Settings(home=home)
        folder.mkdir(parents=True, exist_ok=True)

    def asks(self, *rows: dict[str, str]) -> "Project":
        names = list(dict.fromkeys(name for row in rows for name in row))
        with (self.folder / "questions.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
        return self

    def run(self, **more: Any) -> RunResult:
        self._patch.chdir(self.folder)
        result = run({**SPEC, **more.pop("spec", {})}, settings=self.settings, **more)
        assert isinstance(result, RunResult)
        return result

    def runs(self) -> list[str]:
        return [row.id for row in list_runs(settings=self.settings).stored]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def here(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path / "here", home, monkeypatch)


@pytest.fixture
def there(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path / "there", home, monkeypatch)


def test_two_folders_with_one_spec_share_a_run_only_for_equal_questions(here: Project, there: Project):
    first = here.asks(RAIN, SNOW).run()
    other = there.asks(HAIL).run()
    assert (first.questions, other.questions) == (2, 1)
    assert first.run != other.run
    assert not other.notes  # Runs without common questions get no note.
    assert here.run().progress.skipped == 2
    # The same questions in another order, in another folder, are the same run.
    again = there.asks(SNOW, RAIN).run()
    assert (again.run, again.progress.skipped) == (first.run, 2)
    assert len(here.runs()) == 2


def test_question_file_is_also_looked_up_beside_the_spec(
    here: Project, there: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    runs = [project.asks(row).run() for project, row in ((here, RAIN), (there, SNOW))]
    monkeypatch.chdir(tmp_path)
    for project, before in zip((here, there), runs, strict=True):
        (project.folder / "run.yaml").write_text(json.dumps(SPEC))
        result = run(project.folder / "run.yaml", settings=project.settings)
        assert isinstance(result, RunResult)
        assert (result.run, result.progress.skipped) == (before.run, 1)
    with pytest.raises(InputError, match="neither a file nor"):
        run(SPEC, settings=here.settings)


def test_added_questions_make_another_run_or_extend_the_run(here: Project):
    first = here.asks(RAIN).run()
    another = here.asks(RAIN, SNOW).run()
    assert another.run != first.run
    assert f"run {first.run} asks 1 of these 2 questions" in another.notes[0]
    assert "extend that one" in another.notes[0]

    longer = here.asks(RAIN, HAIL).run(extend=True)
    assert (longer.run, longer.progress.done, longer.progress.skipped) == (first.run, 2, 1)
    assert longer.notes[0] == f"1 questions are added to run {first.run}"
    # From then on both the longer and the original file continue that run.
    assert here.run().run == first.run
    assert here.run(extend=True).progress.skipped == 2
    began = here.asks(RAIN).run()
    assert (began.run, began.progress.skipped, began.notes) == (first.run, 1, ())


@pytest.mark.parametrize("field", ["text", "by", "criteria", "price", "options", "due"])
def test_edited_question_is_named_and_makes_another_run(here: Project, field: str):
    changed = {"text": "Will it pour?", "by": "2026-01-11", "criteria": "A millimetre.", "price": "0.3", "due": ""}
    first = here.asks(RAIN, SNOW).run()
    edited = {**RAIN, field: "a;b" if field == "options" else changed[field] or "2026-01-06"}
    there = here.asks(edited, SNOW)
    with pytest.raises(InputError, match=r"'rain'"):
        there.run(extend=True)
    second = there.run()
    assert second.run != first.run
    assert "'rain'" in second.notes[0]
    # With the original wording, the old run continues.
    assert here.asks(RAIN, SNOW).run().run == first.run


def test_extend_neither_drops_questions_nor_starts_a_run(here: Project):
    with pytest.raises(InputError, match="no run of this spec"):
        here.asks(RAIN).run(extend=True)
    here.asks(RAIN, SNOW).run()
    with pytest.raises(InputError, match="also asks 'snow'"):
        here.asks(RAIN, HAIL).run(extend=True)
    with pytest.raises(InputError, match="no run of this spec"):
        here.run(extend=True, spec={"seed": 5})


def test_interrupted_run_resumes_with_its_own_questions(here: Project):
    first = here.asks(RAIN, SNOW).run()
    with closing(RunStore(here.settings.store)) as store:
        store.database.write("delete from cell where question = 'snow'", ())
        here.asks({**RAIN, "text": "Will it pour?"}, HAIL)
        # The page resumes a stored run with its own questions, even if the file has changed.
        waiting = resume(store, first.run, here.settings)
        assert {question.text for question in waiting.questions} == {"Will it rain?", "Will it snow?"}
        assert waiting.spec.id == first.run
        # The command reads the file, whose other questions are another run.
        begun = find_run_of(store, prepare_run(spec_from_mapping(SPEC)))
        assert begun.spec.id != first.run
        assert "'rain' has another wording" in begun.notes[0]
    assert here.asks(RAIN, SNOW).run().progress.skipped == 1


def test_a_stored_run_finds_its_own_file_from_any_folder(here: Project, there: Project):
    mine = here.asks(RAIN).run()
    there.asks(SNOW).run()  # The working directory is now the other folder, with a file of the same name.
    with closing(RunStore(here.settings.store)) as store:
        assert [question.id for question in questions_of_run(store, mine.run).questions] == ["rain"]
        assert [question.id for question in resume(store, mine.run, here.settings).questions] == ["rain"]


def test_file_with_outcomes_of_other_questions_is_rejected(here: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(here.folder)
    result = here.run(spec={"questions": {"dataset": "demo", "limit": 2}})
    with closing(RunStore(here.settings.store)) as store:
        assert questions_of_run(store, result.run).outcomes()
        body = json.loads(store.database.read("select body from question limit 1", ())[0][0])
        store.database.write(
            "update question set body = ? where id = ? and due = ?",
            (json.dumps({**body, "text": "Another?"}), body["id"], datetime.fromisoformat(body["due"]).isoformat()),
        )
        with pytest.raises(InputError, match="no longer has it"):
            questions_of_run(store, result.run)


def test_runs_without_digests_continue_if_their_questions_are_equal(here: Project):
    old = RunSpec(questions=QuestionsSpec(dataset="questions.csv"), forecaster="always")
    assert "digest" not in old.to_json()
    here.asks(RAIN, SNOW)
    here.run()
    with closing(RunStore(here.settings.store)) as store:
        new = store.runs()[0].id
        # As stored by an older version: without a digest, so that the id is that of the spec alone.
        store.database.write("update run set id = ?, spec = ?, folder = ''", (old.id, old.to_json()))
        for table in ("cell", "question", "event"):
            store.database.write(f"update {table} set run = ?", (old.id,))
    assert new != old.id
    result = here.run()
    assert (result.run, result.progress.skipped) == (old.id, 2)
    assert here.asks(RAIN, SNOW, HAIL).run(extend=True).run == old.id
    assert here.asks({**RAIN, "text": "Will it pour?"}, SNOW, HAIL).run().run != old.id
    # The first version stored no texts, so the ids are compared and the current texts stored.
    here.asks(RAIN, SNOW, HAIL)
    with closing(RunStore(here.settings.store)) as store:
        store.database.write("delete from question where run = ?", (old.id,))
    assert here.run().run == old.id
    with closing(RunStore(here.settings.store)) as store:
        assert len(store.questions(old.id)) == 3


def test_questions_without_dates_are_asked_once_or_again_after_some_days(here: Project):
    here.asks({"id": "rain", "text": "Will it rain?", "price": "0.4"})
    first = here.run(spec={"mode": "live"})
    again = here.run(spec={"mode": "live"})
    assert (again.run, again.progress.skipped) == (first.run, 1)
    weekly = {"mode": "live", "questions": {"dataset": "questions.csv", "again": 7}}
    begun = here.run(spec=weekly)
    assert here.run(spec=weekly).progress.skipped == 1
    with closing(RunStore(here.settings.store)) as store:
        (question,) = store.questions(begun.run)
        spec = spec_from_json(next(stored_spec for id, stored_spec in store.specs() if id == begun.run))
        later = datetime.now(UTC) + timedelta(days=8)
        quote = Snapshot(at=later, last_price=0.4)
        seen = replace(
            question, due=later, targets=tuple(replace(target, snapshot=quote) for target in question.targets)
        )
        prepared = replace(prepare_run(spec.with_digest("")), questions=(seen,), now=later)
        match = match_questions([question], prepared, begun.run, spec, {})
        assert match.same
        assert match.questions == (seen,)


def test_digest_in_a_spec_must_match_the_questions(here: Project):
    here.asks(RAIN)
    here.run()
    digest = prepare_run(spec_from_mapping(SPEC)).spec.questions.digest
    pinned = {"questions": {"dataset": "questions.csv", "digest": digest}}
    assert here.run(spec=pinned).progress.skipped == 1
    with pytest.raises(InputError, match="other questions than the spec"):
        here.asks(SNOW).run(spec=pinned)


def test_a_replay_needs_only_the_questions_that_were_stored(here: Project, there: Project):
    mine = here.asks(RAIN, SNOW).run()
    here.asks(HAIL)
    Journal(here.settings.journal).close()
    replayed = replay(mine.run, settings=here.settings)
    assert (replayed.same, replayed.total) == (2, 2)


def test_digest_depends_only_on_the_questions():
    rain = Question(id="a", source="own", text="Will it rain?", due=instant("2026-01-05"), targets=(Target(id="yes"),))
    snow = replace(rain, id="b")
    assert questions_digest([rain, snow]) == questions_digest([snow, rain])
    assert len({questions_digest([rain]), questions_digest([snow]), questions_digest([rain, snow])}) == 3
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    today, tomorrow = replace(rain, due=now), replace(rain, due=now + timedelta(days=1))
    assert questions_digest([today], now) == questions_digest([tomorrow], tomorrow.due)
    assert questions_digest([today]) != questions_digest([tomorrow])


def test_projects_that_share_a_database_do_not_share_a_run(here: Project, there: Project, postgres: str):
    """Machines of a cluster find or distinguish runs in their shared database."""
    for project in (here, there):
        project.settings = replace(project.settings, database=postgres)
    first, other = here.asks(RAIN, SNOW).run(), there.asks(HAIL).run()
    assert first.run != other.run
    again = there.asks(SNOW, RAIN).run()
    assert (again.run, again.progress.skipped) == (first.run, 2)
    longer = there.asks(RAIN, SNOW, HAIL).run(extend=True)
    assert (longer.run, longer.progress.skipped) == (first.run, 2)
    with closing(RunStore(postgres)) as store:
        row = store.run(first.run)
        assert row is not None
        assert row.folder == str(there.folder)
        assert len(store.questions(first.run)) == 3
