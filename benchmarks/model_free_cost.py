"""CPU time of the forecaster `model_free` for a question, as a ratio to the target of 15 ms.

Made-up rounds in the shape of the public ones: ten of 250 data-set questions at four dates each, with fresh series for
every second one. The first question of a round fits the models for all of it, so whole rounds are measured.
"""

import asyncio
import time
from datetime import date, timedelta

import numpy as np

from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.past import Past, PastAnswer
from foretell.forecasters.forecaster import Context
from foretell.forecasters.model_free.model_free import ModelFree
from foretell.questions.question import LastValue, Question, SeriesRef, Target

ALLOWED = 0.015
FIRST, ROUNDS, EACH = date(2025, 3, 2), 10, 50
WORDS = ("the yield of bonds", "the 3-month treasury bill rate", "deposits in all US commercial banks")


def question_of(source: str, number: int, due: date) -> Question:
    """One question of a source."""
    station = f"m/TEMPERATURE/celsius.07{number:03}.D"
    id = {"fred": f"F{number}", "yfinance": f"Y{number}", "dbnomics": station}.get(source)
    texts = {"fred": WORDS[number % 3], "acled": f"more 'Riots' in Land {number} for the 30 days"}
    subtypes = {"acled": "increase", "wikipedia": ("fide_rank", "vaccine")[number % 2]}
    ends = [due + timedelta(days=days) for days in (7, 30, 90, 180)]
    return Question(
        id=f"{source}/{number}",
        source=source,
        kind="dataset",
        subtype=subtypes.get(source, "all"),
        text=texts.get(source, "?"),
        due=str(due),
        targets=tuple(Target(id=str(end), resolves_at=str(end)) for end in ends),
        last_value=LastValue(value=float(number % 20), at=str(due - timedelta(days=10))),
        series=None if id is None else SeriesRef(provider=source, id=id),
    )


def synthetic_rounds() -> tuple[list[Question], Past, SeriesInMemory]:
    """Return rounds, their outcomes, and series."""
    rng = np.random.default_rng(0)
    sources = ("fred", "yfinance", "dbnomics", "acled", "wikipedia")
    dues = [FIRST + timedelta(days=14 * n) for n in range(ROUNDS)]
    questions = [question_of(source, n, due) for due in dues for source in sources for n in range(EACH)]
    answers = [
        PastAnswer(
            question_id=question.id,
            due=question.due,
            target_id=target.id,
            outcome=int(rng.integers(2)),
            known_on=date.fromisoformat(target.id),
        )
        for question in questions
        for target in question.targets
    ]
    days = np.arange("2010-01-01", "2026-01-01", dtype="M8[D]")
    ids = ["DGS1", "EFFR", *(f"{letter}{n}" for letter in "FY" for n in range(0, EACH, 2))]
    ids += [f"m/TEMPERATURE/celsius.07{n:03}.D" for n in range(0, EACH, 2)]
    series = {id: Series(id=id, days=days, values=20 + np.cumsum(rng.normal(0, 0.05, len(days)))) for id in ids}
    return questions, Past.of(questions, answers), SeriesInMemory(series=series)


def main() -> None:
    """Measure and print."""
    questions, past, series = synthetic_rounds()
    model_free = ModelFree()

    async def answer() -> None:
        for question in questions:
            before = past.before(question.due.date())
            await model_free.forecast(question, Context(as_of=question.as_of, series=series, past=before))

    start = time.process_time()
    asyncio.run(answer())
    each = (time.process_time() - start) / len(questions)
    print(f"{1e3 * each:.1f} ms of processor time a question, {each / ALLOWED:.2f} of what is allowed")


if __name__ == "__main__":
    main()
