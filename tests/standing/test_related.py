"""Related questions: found without false groups, declared, and made coherent with both numbers kept."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from foretell.questions.errors import InputError
from foretell.questions.question import NumericRange, Question, SeriesRef, Target
from foretell.standing.record import StandingBelief, StandingQuestion, StandingState
from foretell.standing.related import declared_groups, made_coherent, related_groups, sureness

NOW = datetime(2026, 7, 1, tzinfo=UTC)
END = "2026-12-31"


def standing(
    id: str, text: str, *related: str, closes: str | None = END, state: StandingState = "open", **fields: object
) -> StandingQuestion:
    question = Question(id=f"asked/{id}", source="asked", text=text, due=NOW, closes_at=closes, **fields)  # pyright: ignore
    return StandingQuestion(
        id=id, question=question, opened_at=NOW, settings={"watch": {"related": related}}, state=state
    )


def belief(p: float | dict[str, float], interval: tuple[float, float] | None = None, trials: int = 1) -> StandingBelief:
    values = {"yes": p} if isinstance(p, float) else p
    ranges = {} if interval is None else dict.fromkeys(values, interval)
    return StandingBelief(number=1, look=1, at=NOW, p=values, ranges=ranges, trials=trials)


def found(*questions: StandingQuestion) -> list[str]:
    return [str(group) for group in related_groups(questions)]


@pytest.mark.parametrize(
    ("texts", "group"),
    [
        (
            ["Will Bitcoin reach $150,000 by 31 December 2026?", "Will Bitcoin reach $200,000 by 31 December 2026?"],
            "thresholds: q1, q0",
        ),
        (
            ["Will BTC reach $200k by December 31, 2026?", "Will Bitcoin reach $150,000 by 31 December 2026?"],
            "thresholds: q0, q1",
        ),
        (["Is US inflation above 3% in May 2027?", "Is US inflation above 4% in May 2027?"], "thresholds: q1, q0"),
        (["Does the port reopen by 2026-12-01?", "Does the port reopen by 2026-09-01?"], "dates: q1, q0"),
        (
            ["Will Ann Lee become the next mayor of Oslo?", "Will Bob van Dam become the next mayor of Oslo?"],
            "at most one of q0, q1",
        ),
        (
            ["Will Ann Lee win the Labour nomination for mayor?", "Will Bob Dam win the Labour nomination for mayor?"],
            "at most one of q0, q1",
        ),
    ],
)
def test_questions_that_differ_in_a_number_a_date_or_a_person_are_related(texts: list[str], group: str):
    assert found(*(standing(f"q{i}", text) for i, text in enumerate(texts))) == [group]


@pytest.mark.parametrize(
    "texts",
    [
        ["Will Bitcoin reach $150,000 by 31 December 2026?", "Will Ethereum reach $200,000 by 31 December 2026?"],
        ["Will Bitcoin reach $150,000 by 31 December 2026?", "Will Bitcoin reach $200,000 by 31 March 2027, and stay?"],
        ["Will Bitcoin be above $150,000 in May?", "Will Bitcoin be below $200,000 in May?"],
        ["Is US inflation above 3% in May 2027?", "Is US inflation above 4% in June 2027?"],
        ["Is the UK growing by more than 1%?", "Is the US growing by more than 2%?"],
        ["Does the port not reopen by 2026-12-01?", "Does the port not reopen by 2026-09-01?"],
        ["Will she still be in office by 2026-12-01?", "Will she still be in office by 2026-09-01?"],
        ["Will Ann Lee become the next mayor of Oslo?", "Will Ann Marie Lee become the next mayor of Oslo?"],
        ["Will Ann Lee become the next mayor of Oslo?", "Will Bob Dam become the next mayor of Bergen?"],
        ["Will Ann Lee win an award in 2026?", "Will Bob Dam win an award in 2026?"],
        ["Will Real Madrid win the final?", "Will Kylian Mbappé win the final?"],
        ["Will Ann Lee or Bob Dam become the next mayor of Oslo?", "Will Eva Ek become the next mayor of Oslo?"],
        ["Will Ann Lee be elected to the senate?", "Will Bob Dam be elected to the senate?"],
        ["Will it rain in Oslo?", "Will it rain in Oslo?"],
    ],
)
def test_other_questions_are_not_related(texts: list[str]):
    assert found(*(standing(f"q{i}", text) for i, text in enumerate(texts))) == []


def test_a_number_on_another_day_or_by_other_criteria_is_not_compared():
    text = "Is the index above {}?"
    pair = [standing("a", text.format(50)), standing("b", text.format(60))]
    assert found(*pair) == ["thresholds: b, a"]
    assert found(pair[0], standing("b", text.format(60), closes="2027-01-31")) == []
    assert found(pair[0], standing("b", text.format(60), criteria="By the bank's own count.")) == []
    same = [standing("a", text.format(50), criteria="Above 50."), standing("b", text.format(60), criteria="Above 60.")]
    assert found(*same) == ["thresholds: b, a"]


def test_wordings_are_only_compared_where_all_but_the_number_agrees(monkeypatch: pytest.MonkeyPatch):
    """Hundreds of watched questions would otherwise take seconds, for each of their pages."""
    compared: list[object] = []
    monkeypatch.setattr("foretell.standing.related.compare", lambda *asked: compared.append(asked))
    days = [f"2027-{month:02}-{day:02}T00:00:00Z" for month in range(1, 13) for day in range(1, 29)]
    asked = [standing(f"q{n}", f"Will thing {n} exceed {n} units?", closes=day) for n, day in enumerate(days)]
    assert found(*asked) == []
    assert compared == []


def test_resolved_questions_are_not_related():
    a, b = standing("a", "Does it open by 2026-09-01?"), standing("b", "Does it open by 2026-12-01?")
    assert found(replace(a, state="paused"), b) == ["dates: a, b"]
    assert found(replace(a, state="resolved"), b) == []


def test_thresholds_of_one_series_are_related_whatever_their_wording():
    def on(id: str, text: str, threshold: float, day: str = END) -> StandingQuestion:
        series = SeriesRef(provider="fred", id="DGS10", threshold=threshold)
        return standing(id, text, closes=day, series=series)

    questions = [on("a", "Do yields end high?", 4.0), on("b", "Do yields end very high?", 5.0)]
    assert found(*questions, on("c", "And a year later?", 5.0, "2027-12-31")) == ["thresholds: b, a"]


def test_a_group_contains_the_other_targets_of_its_questions():
    options = (Target(id="ann"), Target(id="bob"), Target(id="eva"))
    race = standing("race", "Who wins?", targets=options, exclusivity="exactly one")
    ally = standing("ally", "Does her ally enter the cabinet?", "this implies race:ann")
    assert found(race) == []
    assert found(race, ally) == ["ally implies race:ann", "exactly one of race:ann, race:bob, race:eva"]
    beliefs = {"race": belief({"ann": 0.2, "bob": 0.5, "eva": 0.3}), "ally": belief(0.6)}
    after = made_coherent(beliefs, related_groups([race, ally]))
    assert after["ally"]["yes"] == pytest.approx(after["race"]["ann"])
    assert 0.2 < after["race"]["ann"] < 0.6
    assert sum(after["race"].values()) == pytest.approx(1)
    assert beliefs["race"].p == {"ann": 0.2, "bob": 0.5, "eva": 0.3}


def test_thresholds_of_a_number_are_kept_in_order():
    targets = tuple(Target(id=f">{v}", label=f"above {v} seats") for v in (10, 20, 30))
    scale = NumericRange(minimum=0, maximum=40, unit="seats")
    seats = standing("seats", "How many seats?", targets=targets, range=scale, subtype="numeric")
    wins = standing("wins", "Does the party win?", "this implies seats:>20")
    beliefs = {"seats": belief({">10": 0.35, ">20": 0.3, ">30": 0.1}), "wins": belief(0.6)}
    after = made_coherent(beliefs, related_groups([seats, wins]))
    assert after["seats"][">10"] >= after["seats"][">20"] - 1e-9
    assert after["wins"]["yes"] <= after["seats"][">20"] + 1e-9


DECLARED = [
    ("this implies later", "a implies later", {"a": 0.6, "later": 0.4}),
    ("exactly one of this, later, other", "exactly one of a, later, other", {"a": 0.6, "later": 0.4, "other": 0.2}),
    ("at most one of this, later", "at most one of a, later", {"a": 0.8, "later": 0.4}),
    ("this = later * other", "a = later * other", {"a": 0.6, "later": 0.4, "other": 0.5}),
    ("this implies lat implies oth", "a implies later implies other", {"a": 0.6, "later": 0.4, "other": 0.5}),
]


@pytest.mark.parametrize(("text", "words", "p"), DECLARED)
def test_declared_relations_are_read_and_kept(text: str, words: str, p: dict[str, float]):
    questions = [standing("a", "A?", text), standing("later", "B?"), standing("other", "C?")]
    (group,) = related_groups(questions)
    assert (str(group), group.origin) == (words, "declared")
    beliefs = {id: belief(value) for id, value in p.items()}
    after = made_coherent(beliefs, [group])
    assert after
    second = {id: belief(after.get(id, {"yes": p[id]})["yes"]) for id in p}
    assert made_coherent(second, [group]) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("this and later", "is not a relation"),
        ("this implies nothing-known", "no question 'nothing-known' is watched"),
        ("this implies this", "one twice"),
        ("exactly one of this", "too few claims"),
        ("this implies race", "race has no target ''"),
        ("this implies race:zed", "no target 'zed'"),
        ("this implies l", "beginning of several"),
    ],
)
def test_a_relation_that_cannot_be_read_is_an_error(text: str, problem: str):
    race = standing("race", "Who?", targets=(Target(id="ann"), Target(id="bob")))
    questions = [standing("a", "A?", text), standing("later", "B?"), standing("last", "C?"), race]
    with pytest.raises(InputError, match=problem) as error:
        declared_groups(questions[0], questions)
    assert error.value.column == "watch.related"


def test_the_surer_forecast_moves_less():
    groups = related_groups([standing("a", "A?", "this implies b"), standing("b", "B?")])
    after = made_coherent({"a": belief(0.7, (0.65, 0.75)), "b": belief(0.4, (0.2, 0.7))}, groups)
    assert after["a"]["yes"] == pytest.approx(after["b"]["yes"])
    assert after["a"]["yes"] > 0.6
    more = made_coherent({"a": belief(0.7, trials=1), "b": belief(0.4, trials=9)}, groups)
    assert more["b"]["yes"] < 0.45
    assert sureness(0.5, (0.5, 0.5)) < 1e6


def test_relations_hold_among_the_questions_that_have_a_belief():
    questions = [standing("a", "A?", "this implies b implies c"), standing("b", "B?"), standing("c", "C?")]
    after = made_coherent({"a": belief(0.7), "c": belief(0.4)}, related_groups(questions))
    assert after["a"] == pytest.approx(after["c"])
    assert made_coherent({"a": belief(0.7)}, related_groups(questions)) == {}


def test_contradictory_relations_change_nothing_and_are_logged(caplog: pytest.LogCaptureFixture):
    related = ["exactly one of this, b", "exactly one of c, d", "at most one of this, b, c, d"]
    questions = [standing("a", "A?", *related), *(standing(id, f"{id}?") for id in "bcd")]
    beliefs = {id: belief(0.4) for id in "abcd"}
    assert made_coherent(beliefs, related_groups(questions)) == {}
    assert "left as they are" in caplog.text
