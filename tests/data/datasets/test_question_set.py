from pathlib import Path

import pytest

from foretell.data.datasets.question_set import ContextSource, QuestionSet, union
from foretell.data.files import home_folder
from foretell.questions.as_of import instant
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

DUE = instant("2026-01-18")


def question(name: str = "a", due=DUE) -> Question:
    return Question(id=name, source="own", text="?", due=due, targets=(Target(id="yes"),))


def resolution(name: str = "a", due=DUE, outcome: int | None = 1) -> Resolution:
    return Resolution(question_id=name, target_id="yes", due=due, outcome=outcome)


def test_a_question_may_be_asked_again_but_not_at_the_same_time() -> None:
    later = instant("2026-02-01")
    QuestionSet(name="s", questions=(question(), question(due=later)))
    with pytest.raises(ValueError, match="set s asks question a / 2026-01-18"):
        QuestionSet(name="s", questions=(question(), question()))
    with pytest.raises(ValueError, match="resolves target"):
        QuestionSet(name="s", resolutions=(resolution(), resolution(outcome=0)))


def test_a_selection_keeps_its_order_outcomes_and_articles() -> None:
    article = (ContextSource(title="t", url="u", summary="s"),)
    whole = QuestionSet(
        name="s",
        questions=(question("a"), question("b"), question("c")),
        resolutions=(resolution("a"), resolution("b"), resolution("c")),
        contexts={("a", DUE): article, ("c", DUE): article},
    )
    part = whole.only([whole.questions[2], whole.questions[1]], name="part")
    assert [q.id for q in part.questions] == ["c", "b"]
    assert {key[0] for key in part.outcomes()} == {"b", "c"}
    assert list(part.contexts) == [("c", DUE)]


def test_notes_of_a_union_name_their_set() -> None:
    parts = [QuestionSet(name=n, questions=(question(n),), notes=("1 row dropped",)) for n in "ab"]
    whole = union("both", parts)
    assert len(whole.questions) == 2
    assert whole.notes == ("a: 1 row dropped", "b: 1 row dropped")


def test_outcomes_of_different_rounds_are_separate() -> None:
    later = instant("2026-02-01")
    question_set = QuestionSet(name="s", resolutions=(resolution(outcome=1), resolution(due=later, outcome=0)))
    assert question_set.outcomes() == {("a", DUE, "yes"): 1, ("a", later, "yes"): 0}


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_every_operating_system_has_a_home_folder(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert home_folder({}).name.lower() == "foretell"


def test_the_home_folder_of_earlier_versions_is_still_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    places = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert home_folder(places) == tmp_path / "data/foretell"
    (tmp_path / "cache/foretell").mkdir(parents=True)
    assert home_folder(places) == tmp_path / "cache/foretell"
    (tmp_path / "data/foretell").mkdir(parents=True)
    assert home_folder(places) == tmp_path / "data/foretell"
