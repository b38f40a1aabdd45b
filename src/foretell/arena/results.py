"""What a run has to say: trials put together, one forecast per question."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from foretell.forecasters.combine.aggregate import Aggregate, Rule
from foretell.questions.distribution import Categorical
from foretell.questions.forecast import Failure, Forecast, Usage
from foretell.questions.question import Question


def combined(answers: Iterable[Forecast | Failure], questions: Iterable[Question], rule: Rule) -> list[Forecast]:
    """One forecast per question out of its trials; a question whose trials all failed is absent."""
    exclusive = {q.id for q in questions if q.exclusive and len(q.targets) > 1}
    groups: dict[tuple[str, str], list[Forecast]] = {}
    failed: dict[tuple[str, str], int] = {}
    for answer in answers:
        key = (answer.question_id, str(answer.as_of))
        if isinstance(answer, Forecast):
            groups.setdefault(key, []).append(answer)
        else:
            failed[key] = failed.get(key, 0) + 1
    return [
        _together(trials, rule, failed.get(key, 0), exclusive=key[0] in exclusive) for key, trials in groups.items()
    ]


def _together(trials: Sequence[Forecast], rule: Rule, failed: int, *, exclusive: bool) -> Forecast:
    p = Aggregate(rule=rule).apply([trial.p for trial in trials], failed=failed)
    if exclusive:
        p = Categorical(p=p, normalise=True).p
    usage = Usage(
        dollars=sum(t.usage.dollars for t in trials),
        input_tokens=sum(t.usage.input_tokens for t in trials),
        output_tokens=sum(t.usage.output_tokens for t in trials),
        seconds=max(t.usage.seconds for t in trials),
        calls=sum(t.usage.calls for t in trials),
    )
    # The trial nearest to the common answer speaks for all of them.
    nearest = min(trials, key=lambda t: sum(abs(t.p[target] - p[target]) for target in p))
    told = f"{len(trials)} trials combined by {rule}; the one nearest to their answer says:\n\n"
    rationale = told + nearest.rationale if len(trials) > 1 else nearest.rationale
    return replace(nearest, p=p, trial=0, usage=usage, rationale=rationale)
