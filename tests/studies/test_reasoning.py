"""The reasoning judge: a fixed rubric at temperature 0, anonymous forecasts, retries, and reported failures."""

import asyncio
import json
from typing import Any

import pytest
from tests.forecasters.context.doubles import BACK, CUP, SNOW, VISITS, shared

from foretell.metrics import Resampling
from foretell.models.model import ModelError, Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.structured_output import UnusableReply
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.report.document import markdown_study, study_page
from foretell.studies.cases import ReasoningCase
from foretell.studies.reasoning import (
    DIMENSIONS,
    MARKED_EXAMPLE,
    MarkedCase,
    Rating,
    judge_instruction,
    mark_cases,
    rating_sheet,
    read_marks,
    read_ratings,
    reasoning_study,
)

QUICK = Resampling(draws=200)


def case(
    question: Question = CUP, forecaster: str = "gpt-x", rationale: str = "Report 1 leads.", trial: int = 0
) -> ReasoningCase:
    forecast = Forecast(
        question_id=question.id,
        forecaster=forecaster,
        as_of=BACK,
        p={target.id: 1 / len(question.targets) for target in question.targets},
        trial=trial,
        rationale=f"Forecast: 0.5 (default).\n\n{rationale}",
    )
    return ReasoningCase(context=shared(question), forecast=forecast)


def marks(*scores: Any) -> str:
    return json.dumps({name: {"reason": "so", "score": s} for name, s in zip(DIMENSIONS, scores, strict=True)})


def judge(script: Any, cases: list[ReasoningCase]) -> tuple[list[MarkedCase], ScriptedModel]:
    model = ScriptedModel(script)
    return asyncio.run(mark_cases(cases, model, "scripted:judge")), model


def test_judge_sees_context_numbers_and_reasons_but_not_the_forecaster() -> None:
    (marked,), model = judge([marks(1, 2, 3, 4, 5)], [case()])
    assert marked.scores == dict(zip(DIMENSIONS, (1, 2, 3, 4, 5), strict=True))
    assert marked.mean == 3
    (request,) = model.requests
    assert request.settings.temperature == 0
    text = request.messages[1].text
    for wanted in ("Who wins the cup?", "Report 1", "0.613", "leads", '"Red Team": 0.5'):
        assert wanted in text
    assert "gpt-x" not in request.messages[0].text + text
    assert "Forecast: 0.5" not in text


def test_rubric_has_five_dimensions_with_five_marks_and_an_example() -> None:
    instruction = judge_instruction()
    assert len(DIMENSIONS) == 5
    for dimension in DIMENSIONS.values():
        assert len(set(dimension.marks)) == 5
        assert dimension.asks in instruction
    assert MARKED_EXAMPLE in instruction
    for name in DIMENSIONS:
        assert f"\n- {name}: " in MARKED_EXAMPLE


@pytest.mark.parametrize("score", [0, 6, 3.5, "four", None, True, "4", [3], {"a": 1}, -1])
def test_invalid_marks_are_refused(score: Any) -> None:
    with pytest.raises(UnusableReply, match="evidence"):
        read_marks({name: {"reason": "so", "score": score if name == "evidence" else 3} for name in DIMENSIONS})


@pytest.mark.parametrize("bad", ["<html>" * 200_000, "[]", "{}", marks(9, 9, 9, 9, 9), ModelError("down"), Reply()])
def test_a_judge_that_gives_no_marks_is_asked_again_and_then_left_out(bad: Any) -> None:
    marked, model = judge([bad, bad, bad, marks(3, 3, 3, 3, 3)], [case()])
    assert marked[0].scores == {}
    assert marked[0].problem
    assert len(model.requests) <= 3
    study = reasoning_study(marked, resampling=QUICK)
    assert study.text == "No forecast was marked."
    assert any("could not be marked" in note for note in study.notes)


def sheet(rows: list[str]) -> str:
    return "\n".join(["item,rater,sources,evidence,synthesis,alignment,uncertainty", *rows])


def test_the_report_has_means_with_intervals_and_agreement_with_people(tmp_path) -> None:
    cases = [
        case(q, f, f"{f} on {q.id}", trial=t) for q in (CUP, SNOW, VISITS) for f in ("weak", "strong") for t in (0, 1)
    ]
    marked_cases = [
        MarkedCase(case=item, scores=dict.fromkeys(DIMENSIONS, 4 if item.forecast.forecaster == "strong" else 2))
        for item in cases
    ]
    rows = [
        f"{item.item},{who},{4 if item.forecast.forecaster == 'strong' else 2},3,4,,2" for item in cases for who in "ab"
    ]
    path = tmp_path / "people.csv"
    path.write_text(sheet([*rows, "unknown,a,1,1,1,1,1"]), encoding="utf-8")
    study = reasoning_study(marked_cases, read_ratings(path), QUICK)
    by_name = {entry.name: entry.values for entry in study.table("Marks by forecaster").rows}
    assert list(by_name) == ["strong", "weak"]
    assert by_name["strong"][0] == 6
    assert by_name["strong"][1].estimate == 4
    assert by_name["weak"][-1].estimate == 2
    assert by_name["weak"][-1].n_clusters == 3
    people = {entry.name: entry.values for entry in study.table("People and judge").rows}
    assert people["sources"][:2] == (12, 24)
    assert people["sources"][2].estimate == pytest.approx(1)
    assert people["alignment"][:3] == (0, 0, None)
    assert people["uncertainty"][8].estimate == pytest.approx(-1), "people gave 2, the judge 4 and 2"
    among = {entry.name: entry.values for entry in study.table("People among themselves").rows}
    assert among["sources"][2].estimate == pytest.approx(1)
    assert "1 ratings are of items that were not judged" in study.notes
    assert "| strong | 6 | 4.00" in markdown_study(study)
    page = study_page(study)
    assert "<h1>How well forecasts are reasoned</h1>" in page
    assert "Brier index" not in page
    assert study.to_dict()["tables"][0]["rows"][0]["name"] == "strong"


def test_hostile_names_and_notes_stay_text() -> None:
    marked = [MarkedCase(case=case(forecaster="<script>alert(1)</script>|x"), scores=dict.fromkeys(DIMENSIONS, 3))]
    study = reasoning_study([*marked, MarkedCase(case=case(), problem="<img src=x>")], resampling=QUICK)
    assert "<script>alert" not in study_page(study)
    assert "<img" not in study_page(study)
    assert "\\|x" in markdown_study(study)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,sources\nx,3", "column evidence: the column is missing"),
        (sheet(["x,a,3,3,6,3,3"]), "row 1, column synthesis: '6' is not a whole mark"),
        (sheet(["x,a,3,3,2.5,3,3"]), "'2.5' is not a whole mark"),
        (sheet(["x,a,3,3,good,3,3"]), "'good' is not a number"),
        (sheet([",a,3,3,3,3,3"]), "row 1, column item: is missing"),
        (sheet(["x,a,3,3,3,3,3", "x,a,3,3,3,3,3"]), "row 2"),
    ],
)
def test_errors_in_a_rating_sheet_name_row_and_column(text: str, message: str, tmp_path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"people\.csv") as error:
        read_ratings(path)
    assert message in str(error.value)


def test_missing_or_damaged_rating_file_is_reported(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_ratings(tmp_path / "nowhere.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_ratings(tmp_path / "bytes.csv")


def test_empty_rating_sheet_has_no_marks(tmp_path) -> None:
    path = tmp_path / "sheet.csv"
    sheet = rating_sheet([("a1", "=HYPERLINK(1)"), ("b2", "A rationale,\nwith a line.")])
    path.write_text(sheet, encoding="utf-8", newline="")
    assert read_ratings(path) == [Rating(item="a1", rater=""), Rating(item="b2", rater="")]
    assert '"=H' not in path.read_text(encoding="utf-8")
    assert ",=H" not in path.read_text(encoding="utf-8")


def test_item_ids_do_not_reveal_the_forecaster() -> None:
    items = {case(forecaster=f, trial=t).item for f in ("a", "b") for t in (0, 1)}
    assert len(items) == 4
    assert case().item == case().item
    assert "gpt" not in case().item


def test_cases_are_marked_over_http(tmp_path) -> None:
    from fakes.models import FakeModels
    from foretell.models.journal import Journal
    from foretell.models.router import ModelRouter
    from foretell.practice.models.scripts import arena_script

    async def run() -> tuple[list[MarkedCase], int]:
        journal = Journal(tmp_path / "journal.db")
        async with FakeModels(arena_script) as fake:
            addresses = {"openai": f"{fake.url}/v1"}
            async with ModelRouter({"OPENAI_API_KEY": "k"}, journal=journal, addresses=addresses) as exchange:
                cases = [case(rationale="short"), case(SNOW, rationale="long " * 60)]
                marked = await mark_cases(cases, exchange, "openai:judge")
                again = await mark_cases(cases, exchange, "openai:judge")
                assert [entry.scores for entry in again] == [entry.scores for entry in marked]
                wild = await mark_cases(cases[:1], exchange, "openai:wild")
                paid = sum(fake.billed.values())
        journal.close()
        return [*marked, *wild], paid

    marked, paid = asyncio.run(run())
    assert [round(entry.mean) for entry in marked[:2]] == [1, 3]
    assert marked[2].problem
    assert paid == 2 + 3
