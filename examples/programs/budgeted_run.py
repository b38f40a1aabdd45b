"""Run the agent on questions of your own within a budget: first the plan, then the run, then what it cost.

    foretell practice -- python budgeted_run.py

Without practice, set OPENAI_API_KEY and BRAVE_API_KEY, and name your model.
"""

from pathlib import Path

import foretell

Path("questions.csv").write_text(
    "text,closes,price\n"
    "Will Norges Bank cut its rate before 2030?,2029-12-31,0.6\n"
    "Will Oslo have more than 800000 inhabitants in 2030?,2030-06-30,\n",
    encoding="utf-8",
)
spec = {
    "questions": "questions.csv",
    "forecaster": "agent",
    "models": {"agent": "openai:practice"},
    "search": ["brave"],
    "trials": 2,
    "budget": {"run": 0.50, "question": 0.30},
}
plan = foretell.run(spec, plan=True)
print(f"{plan.questions} questions, {plan.trials} trials, about ${plan.dollars:.2f}")

result = foretell.run(spec)
print(f"{result.progress.done} trials, {result.progress.failed} failed, {result.progress.money}")
print(foretell.show(result.run))

# The same settings again give the same run, from stored replies: nothing is asked or paid for twice.
assert foretell.run(spec).run == result.run
