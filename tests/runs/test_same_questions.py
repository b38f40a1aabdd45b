"""A run is a spec over certain questions: other questions in a file of the same name are another run."""

import csv
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foretell import run
from foretell.data.datasets import questions_digest
from foretell.models import Journal
from foretell.operations import RunResult, list_runs, replay, resume
from foretell.questions import InputError, Question, Snapshot, Target, instant
from foretell.runs import (
    QuestionsSpec,
    RunSpec,
    RunStore,
    Settings,
    find_run_of,
    match_questions,
    prepare_run,
    questions_of_run,
    spec_from_json,
    spec_from_mapping,
)

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
        found = run({**SPEC, **more.pop("spec", {})}, settings=self.settings, **more)
        assert isinstance(found, RunResult)
        return found

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


def test_two_folders_with_one_spec_share_a_run_only_where_they_ask_the_same(here: Project, there: Project):
    first = here.asks(RAIN, SNOW).run()
    other = there.asks(HAIL).run()
    assert (first.questions, other.questions) == (2, 1)
    assert first.run != other.run
    assert not other.notes  # Strangers have nothing to tell each other.
    assert here.run().progress.skipped == 2
    # The same questions in another order, in another folder, are the same run.
    again = there.asks(SNOW, RAIN).run()
    assert (again.run, again.progress.skipped) == (first.run, 2)
    assert len(here.runs()) == 2


def test_the_path_of_the_file_is_sought_beside_the_spec_too(
    here: Project, there: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made = [project.asks(row).run() for project, row in ((here, RAIN), (there, SNOW))]
    monkeypatch.chdir(tmp_path)
    for project, before in zip((here, there), made, strict=True):
        (project.folder / "run.yaml").write_text(json.dumps(SPEC))
        found = run(project.folder / "run.yaml", settings=project.settings)
        assert isinstance(found, RunResult)
        assert (found.run, found.progress.skipped) == (before.run, 1)
    with pytest.raises(InputError, match="neither a file nor"):
        run(SPEC, settings=here.settings)


def test_what_is_added_is_another_run_or_with_extend_part_of_the_same(here: Project):
    first = here.asks(RAIN).run()
    another = here.asks(RAIN, SNOW).run()
    assert another.run != first.run
    assert f"run {first.run} asks 1 of these 2 questions" in another.notes[0]
    assert "extend that one" in another.notes[0]

    longer = here.asks(RAIN, HAIL).run(extend=True)
    assert (longer.run, longer.progress.done, longer.progress.skipped) == (first.run, 2, 1)
    assert longer.notes[0] == f"1 questions are added to run {first.run}"
    # From then on the longer file is that run, and so is the file that it began with.
    assert here.run().run == first.run
    assert here.run(extend=True).progress.skipped == 2
    began = here.asks(RAIN).run()
    assert (began.run, began.progress.skipped, began.notes) == (first.run, 1, ())


@pytest.mark.parametrize("field", ["text", "by", "criteria", "price", "options", "due"])
def test_an_edited_question_is_named_and_never_mixed_with_the_old_one(here: Project, field: str):
    changed = {"text": "Will it pour?", "by": "2026-01-11", "criteria": "A millimetre.", "price": "0.3", "due": ""}
    first = here.asks(RAIN, SNOW).run()
    edited = {**RAIN, field: "a;b" if field == "options" else changed[field] or "2026-01-06"}
    there = here.asks(edited, SNOW)
    with pytest.raises(InputError, match=r"'rain'"):
        there.run(extend=True)
    second = there.run()
    assert second.run != first.run
    assert "'rain'" in second.notes[0]
    # Put back as it was, the old run goes on.
    assert here.asks(RAIN, SNOW).run().run == first.run


def test_an_extension_neither_drops_nor_invents_a_run(here: Project):
    with pytest.raises(InputError, match="no run of this spec"):
        here.asks(RAIN).run(extend=True)
    here.asks(RAIN, SNOW).run()
    with pytest.raises(InputError, match="also asks 'snow'"):
        here.asks(RAIN, HAIL).run(extend=True)
    with pytest.raises(InputError, match="no run of this spec"):
        here.run(extend=True, spec={"seed": 5})


def test_an_interrupted_run_goes_on_with_the_questions_it_began_with(here: Project):
    first = here.asks(RAIN, SNOW).run()
    with closing(RunStore(here.settings.store)) as store:
        store.database.write("delete from cell where question = 'snow'", ())
        here.asks({**RAIN, "text": "Will it pour?"}, HAIL)
        # The page resumes a stored run: it asks what the run asked, whatever the file says by now.
        waiting = resume(store, first.run, here.settings)
        assert {one.text for one in waiting.questions} == {"Will it rain?", "Will it snow?"}
        assert waiting.spec.id == first.run
        # The command reads the file: those are other questions, and another run.
        begun = find_run_of(store, prepare_run(spec_from_mapping(SPEC)))
        assert begun.spec.id != first.run
        assert "'rain' is worded otherwise" in begun.notes[0]
    assert here.asks(RAIN, SNOW).run().progress.skipped == 1


def test_a_stored_run_finds_its_own_file_from_any_folder(here: Project, there: Project):
    mine = here.asks(RAIN).run()
    there.asks(SNOW).run()  # Leaves the working directory in the other folder, with a file of the same name.
    with closing(RunStore(here.settings.store)) as store:
        assert [one.id for one in questions_of_run(store, mine.run).questions] == ["rain"]
        assert [one.id for one in resume(store, mine.run, here.settings).questions] == ["rain"]


def test_a_file_that_tells_outcomes_of_other_questions_is_refused(here: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(here.folder)
    made = here.run(spec={"questions": {"dataset": "demo", "limit": 2}})
    with closing(RunStore(here.settings.store)) as store:
        assert questions_of_run(store, made.run).outcomes()
        body = json.loads(store.database.read("select body from question limit 1", ())[0][0])
        store.database.write(
            "update question set body = ? where id = ? and due = ?",
            (json.dumps({**body, "text": "Another?"}), body["id"], datetime.fromisoformat(body["due"]).isoformat()),
        )
        with pytest.raises(InputError, match="no longer holds it"):
            questions_of_run(store, made.run)


def test_runs_from_before_digests_are_adopted_where_they_ask_the_same(here: Project):
    old = RunSpec(questions=QuestionsSpec(dataset="questions.csv"), forecaster="always")
    assert "digest" not in old.to_json()
    here.asks(RAIN, SNOW)
    here.run()
    with closing(RunStore(here.settings.store)) as store:
        new = store.runs()[0].id
        # As an older version left it: no digest in the spec, so that the id is that of the spec alone.
        store.database.write("update run set id = ?, spec = ?, folder = ''", (old.id, old.to_json()))
        for table in ("cell", "question", "event"):
            store.database.write(f"update {table} set run = ?", (old.id,))
    assert new != old.id
    found = here.run()
    assert (found.run, found.progress.skipped) == (old.id, 2)
    assert here.asks(RAIN, SNOW, HAIL).run(extend=True).run == old.id
    assert here.asks({**RAIN, "text": "Will it pour?"}, SNOW, HAIL).run().run != old.id
    # The first version kept no texts: there the ids decide, and the texts of now are stored.
    here.asks(RAIN, SNOW, HAIL)
    with closing(RunStore(here.settings.store)) as store:
        store.database.write("delete from question where run = ?", (old.id,))
    assert here.run().run == old.id
    with closing(RunStore(here.settings.store)) as store:
        assert len(store.questions(old.id)) == 3


def test_a_file_without_dates_is_asked_once_and_after_so_many_days_anew(here: Project):
    here.asks({"id": "rain", "text": "Will it rain?", "price": "0.4"})
    first = here.run(spec={"mode": "live"})
    again = here.run(spec={"mode": "live"})
    assert (again.run, again.progress.skipped) == (first.run, 1)
    weekly = {"mode": "live", "questions": {"dataset": "questions.csv", "again": 7}}
    begun = here.run(spec=weekly)
    assert here.run(spec=weekly).progress.skipped == 1
    with closing(RunStore(here.settings.store)) as store:
        (asked,) = store.questions(begun.run)
        spec = spec_from_json(next(written for id, written in store.specs() if id == begun.run))
        later = datetime.now(UTC) + timedelta(days=8)
        quote = Snapshot(at=later, last_price=0.4)
        seen = replace(asked, due=later, targets=tuple(replace(one, snapshot=quote) for one in asked.targets))
        prepared = replace(prepare_run(spec.with_digest("")), questions=(seen,), now=later)
        found = match_questions([asked], prepared, begun.run, spec)
        assert found.same
        assert found.questions == (seen,)


def test_a_spec_may_hold_its_questions_to_a_digest(here: Project):
    here.asks(RAIN)
    here.run()
    digest = prepare_run(spec_from_mapping(SPEC)).spec.questions.digest
    pinned = {"questions": {"dataset": "questions.csv", "digest": digest}}
    assert here.run(spec=pinned).progress.skipped == 1
    with pytest.raises(InputError, match="other questions than the spec says"):
        here.asks(SNOW).run(spec=pinned)


def test_a_replay_needs_only_the_questions_that_were_stored(here: Project, there: Project):
    mine = here.asks(RAIN, SNOW).run()
    here.asks(HAIL)
    Journal(here.settings.journal).close()
    found = replay(mine.run, settings=here.settings)
    assert (found.same, found.total) == (2, 2)


def test_the_digest_is_of_what_is_asked_and_of_nothing_else():
    rain = Question(id="a", source="own", text="Will it rain?", due=instant("2026-01-05"), targets=(Target(id="yes"),))
    snow = replace(rain, id="b")
    assert questions_digest([rain, snow]) == questions_digest([snow, rain])
    assert len({questions_digest([rain]), questions_digest([snow]), questions_digest([rain, snow])}) == 3
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    today, tomorrow = replace(rain, due=now), replace(rain, due=now + timedelta(days=1))
    assert questions_digest([today], now) == questions_digest([tomorrow], tomorrow.due)
    assert questions_digest([today]) != questions_digest([tomorrow])


def test_projects_that_share_a_database_do_not_share_a_run(here: Project, there: Project, postgres: str):
    """What machines of a cluster begin is found, or told apart, in the database that they share."""
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
