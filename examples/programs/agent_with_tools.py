"""Give an agent a function to call, and backtest it beside a forecaster without a model.

    foretell practice -- python agent_with_tools.py

In a backtest, the leakage filter shows the agent only what a tool dates before the question.
"""

import re
from datetime import UTC, datetime

import foretell
from foretell import Agent, AsOf, Question, Resolution, Target
from foretell.types import AgentOptions, Request, SourceItem

RAINY_DAYS = {2021: 9, 2022: 14, 2023: 11}


def rainy_days(month: str, as_of: AsOf) -> list[SourceItem]:
    """Count the rainy days in Oslo in a month of past years.

    Args:
        month: Name of the month, such as November.
        as_of: The date of the forecast, which the model does not choose.
    """
    return [
        SourceItem(
            title=f"{month} {year}",
            text=f"It rained on {days} days in {month} {year}.",
            published=datetime(year, 12, 1, tzinfo=UTC),
        )
        for year, days in RAINY_DAYS.items()
    ]


async def my_model(request: Request) -> dict:
    """Call the tool, then answer with the share of years with more than ten rainy days.

    In its place, name a language model, such as "openai:NAME".
    """
    if len(request.messages) == 2:  # Instructions and the question: no tool was used yet.
        return {"tool": "rainy_days", "month": "November"}
    days = [int(number) for number in re.findall(r"rained on (\d+) days", request.messages[-1].text)]
    p = (sum(number > 10 for number in days) + 1) / (len(days) + 2)
    return {"tool": "submit", "p": p, "reason": f"Known years: {days}."}


questions = [
    Question(
        id=f"rain-{year}",
        source="mine",
        text=f"Will it rain in Oslo on more than 10 days of November {year}?",
        due=f"{year}-11-01",
        targets=(Target(id="yes", resolves_at=f"{year}-12-01"),),
    )
    for year in RAINY_DAYS
]
outcomes = [
    Resolution(question_id=question.id, target_id="yes", outcome=int(RAINY_DAYS[question.due.year] > 10))
    for question in questions
]

agent = Agent(
    my_model,
    tools=[rainy_days],
    models={"filter": "openai:practice"},
    options=AgentOptions(steps=4),
)
print(agent)
result = foretell.backtest([agent, "constant:p=0.5"], questions)
print(result)
for forecast in result.forecasts:
    print(forecast.question_id, forecast.forecaster, forecast.p["yes"])
print(foretell.score(result, outcomes))
