"""Option tasks with payoffs (Analytica, appendix C): which of several choices returns most per dollar?"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.sources.datasets.question_set import Asked, QuestionSet, asked, tally
from foretell.sources.datasets.row import Row, jsonl_rows

FIELDS = ("id", "question", "options", "cutoff", "resolves", "category", "criteria", "background", "source", "cluster")
NO_BEST = "tasks dropped: no single option pays best"


def read_options(path: str | Path) -> QuestionSet:
    """Read option tasks, one JSON object a line.

    `question`, `options` ({"label": dollars, …} or [{"label": …, "value": dollars}, …]) and `cutoff` are needed;
    `resolves`, `id`, `category`, `criteria`, `background`, `source` and `cluster` may be there. Dollars are what one
    dollar put on the option returned; leave all of them out (null) while a task is open.
    """
    counts: Counter[str] = Counter()
    questions: list[Question] = []
    resolutions: list[Resolution] = []
    seen: set[Asked] = set()
    for line in jsonl_rows(Path(path)):
        line.known_fields(FIELDS)
        row = Row(path=line.path, number=line.number, fields=line.fields, name=line.text("id"))
        payoffs = _payoffs(row)
        question = _question(row, tuple(payoffs))
        if asked(question) in seen:
            raise row.problem("id", f"task {question.id} is there twice")
        seen.add(asked(question))
        known = {label: value for label, value in payoffs.items() if value is not None}
        if known and best_option(known) is None:
            counts[NO_BEST] += 1
            continue
        questions.append(question)
        resolutions += resolve(question, known, provenance=row.path.name)
    name = Path(path).stem
    return QuestionSet(name=name, questions=tuple(questions), resolutions=tuple(resolutions), notes=tally(counts))


def best_option(payoffs: Mapping[str, float], *, tolerance: float = 1e-9) -> str | None:
    """The one option that pays more than every other, or None where the best cannot be told from the next.

    >>> best_option({"long": 1.2, "short": 0.8}), best_option({"long": 1.0, "short": 1.0})
    ('long', None)
    """
    ranked = sorted(payoffs, key=lambda label: -payoffs[label])
    if len(ranked) > 1 and payoffs[ranked[0]] - payoffs[ranked[1]] <= tolerance:
        return None
    return ranked[0] if ranked else None


def resolve(question: Question, payoffs: Mapping[str, float], *, provenance: str = "") -> list[Resolution]:
    """Outcomes of a task: 1 for the option that paid best, 0 for the others, each with its dollars."""
    best = best_option(payoffs)
    resolves = question.targets[0].resolves_at
    return [
        Resolution(
            question_id=question.id,
            target_id=label,
            due=question.due,
            outcome=int(label == best),
            payoff=dollars,
            resolved_at=resolves,
            provenance=provenance,
        )
        for label, dollars in payoffs.items()
    ]


def complete_binary(p_first: float) -> tuple[float, float]:
    """Both probabilities of a two-option question when only the first option was analysed.

    >>> complete_binary(0.75)
    (0.75, 0.25)
    """
    if not 0 <= p_first <= 1:
        raise ValueError(f"p_first = {p_first} is outside [0, 1]")
    return p_first, 1.0 - p_first


def _question(row: Row, labels: tuple[str, ...]) -> Question:
    due = row.moment("cutoff")
    if due is None:
        raise row.problem("cutoff", "is missing", "the day whose evening is the last thing a forecaster may know")
    resolves = row.moment("resolves")
    if resolves is not None and resolves <= due:
        raise row.problem("resolves", f"{resolves.date()} is not after the cutoff {due.date()}")
    text = row.text("question") or row.need("question")
    return row.reading(
        "options",
        lambda: Question(
            id=row.text("id") or f"option/{row.number}",
            source=row.text("source") or "options",
            text=text,
            due=due,
            targets=tuple(Target(id=label, label=label, resolves_at=resolves) for label in labels),
            category=row.text("category"),
            criteria=row.text("criteria"),
            background=row.text("background"),
            cluster=row.text("cluster"),
            exclusive=True,
        ),
    )


def _payoffs(row: Row) -> dict[str, float | None]:
    given = row.need("options")
    if isinstance(given, dict):
        given = [{"label": label, "value": value} for label, value in cast(dict[Any, Any], given).items()]
    if not isinstance(given, list) or len(cast(list[Any], given)) < 2:
        raise row.problem("options", "needs two or more options")
    found: dict[str, float | None] = {}
    for item in cast(list[Any], given):
        part = Row(path=row.path, number=row.number, fields=_fields(row, item), name=row.name)
        label = str(part.need("label"))
        if label in found:
            raise row.problem("options", f"option {label!r} is there twice")
        found[label] = part.real("value")
    if len({value is None for value in found.values()}) > 1:
        raise row.problem("options", "some options have dollars and some have none")
    return found


def _fields(row: Row, item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"label": item}
    if not isinstance(item, dict) or not {"label", "value"} >= set(cast(dict[str, Any], item)):
        raise row.problem("options", f"expected a label and a value, found {str(item)[:60]}")
    return cast(dict[str, Any], item)
