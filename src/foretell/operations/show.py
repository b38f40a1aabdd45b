"""Show a stored run: its answers, one question with every step, and reports."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from rich.console import Console
from rich.text import Text

from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.number_text import percent, plural
from foretell.operations.requests.runs import ShowRequest
from foretell.operations.runs import run_to_dict
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import TraceEvent
from foretell.report.document import ReportDocument
from foretell.report.markup import sentence
from foretell.report.numbers import estimate
from foretell.report.question_view import how_made, question_view
from foretell.report.result import DocumentResult
from foretell.report.run_report import answer_text, describe_event, question_report, run_report
from foretell.report.terminal import show_answer, show_text
from foretell.runs.combine import NO_PARTS, CombinationSettings, CombinedAnswer, combined_answers, combining_of_row
from foretell.runs.costs import money_of
from foretell.runs.settings import Settings, load_settings
from foretell.runs.store import RunRow, RunStore, find_run_row
from foretell.scoring.baselines import BASE_RATE, MARKET_PRICE
from foretell.scoring.run_scores import QuestionAnswer, RunScores, score_run

MOST_REASONS = 5
"""Maximum number of kinds of failures that are listed."""


@frozen
class ShowResult(DocumentResult):
    """The answers of a run, or one question with every step to its answer."""

    run: RunRow
    money: Money
    answers: tuple[Forecast | Failure, ...]
    total: int
    """Total number of answers."""
    texts: Mapping[str, str]
    """Question id → its text."""
    steps: Mapping[int, tuple[TraceEvent, ...]]
    """Trial → its events in order; for one question."""
    question: str | None = None
    scores: RunScores | None = None
    """The scores, if all questions are shown."""
    view: Mapping[str, Any] | None = None
    """The result of `question_view` for the question that is shown."""
    facts: tuple[tuple[str, str], ...] = ()
    """How the run was made, as pairs of label and value."""
    limit: int | None = None
    combining: CombinationSettings | None = None
    """How the trials of each question are combined, if all questions are shown."""
    trials: tuple[Forecast | Failure, ...] = ()
    """All answers, if all questions are shown."""

    @property
    def document(self) -> ReportDocument:
        """The report on the question that is shown, or on the run."""
        if self.view is not None:
            return question_report(self.view, self.facts)
        return run_report(
            self.run.name or dict(self.facts)["questions"],
            self.scores or RunScores(run=self.run.id, answers=()),
            self.facts,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per answer."""
        return [
            {
                "question": answer.question_id,
                "as_of": answer.as_of.at.date().isoformat(),
                "trial": answer.trial,
                "answer": ", ".join(f"{target} {percent(p)}" for target, p in answer.p.items())
                + (f" (fallback: {answer.problem})" if answer.fallback else "")
                if isinstance(answer, Forecast)
                else f"failed: {answer.error}",
                "value": None if isinstance(answer, Failure) or answer.value is None else answer.value.in_words,
                "calls": answer.usage.calls if isinstance(answer, Forecast) else None,
                "dollars": answer.usage.dollars if isinstance(answer, Forecast) else None,
            }
            for answer in self.answers
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the stored answers and, for one question, the steps of each trial."""
        body: dict[str, Any] = {
            "run": run_to_dict(self.run, self.money),
            "answers": [
                {**json.loads(to_json(answer)), "question": self.texts.get(answer.question_id, "")}
                for answer in self.answers
            ],
            "total": self.total,
            "caveats": list(self.caveats),
            **({} if self.scores is None else self._scored(self.scores)),
        }
        if self.question is not None:
            body["steps"] = {
                f"trial {trial}": [
                    {
                        "event": type(event).__name__,
                        **event.time_fields,
                        "text": describe_event(event).strip(),
                        **_as_json(vars(event)),
                    }
                    for event in events
                ]
                for trial, events in sorted(self.steps.items())
            }
            combination = (self.view or {}).get("combination")
            body["combination"] = None if combination is None else _as_json(combination)
            body["report"] = self.to_markdown()
        return body

    def _scored(self, scores: RunScores) -> dict[str, Any]:
        """Return every question with its combined answer, and the scores."""
        parts = self._combined(scores)
        return {
            "questions": [
                {
                    "id": answer.question.id,
                    "text": answer.question.text,
                    "as_of": answer.question.as_of.at.isoformat(),
                    "p": {target.id: target.p for target in answer.targets},
                    "price": {target.id: target.price for target in answer.targets},
                    "outcome": {target.id: target.outcome for target in answer.targets},
                    "brier": answer.brier,
                    **(NO_PARTS if part is None else part.to_dict()),
                }
                for answer, part in zip(scores.answers, parts, strict=False)
            ],
            "score": scores.summary(),
            "combined": scores.combined,
            "rule": scores.rule,
        }

    def _combined(self, scores: RunScores) -> list[CombinedAnswer | None]:
        """Return how the answer to each question that is shown came about; None if there is no answer."""
        questions = [answer.question for answer in scores.answers[: self.limit]]
        ids = {question.id for question in questions}
        trials = [answer for answer in self.trials if answer.question_id in ids]
        combined = {
            (answer.forecast.question_id, answer.forecast.as_of.at): answer
            for answer in combined_answers(trials, questions, self.combining)
        }
        return [combined.get((question.id, question.as_of.at)) for question in questions]

    def print(self, console: "Console") -> None:
        """Print the questions with their answers, or every step to the answers of one question."""
        if self.scores is not None:
            show_text(console, f"{self._overview(self.scores)}\n")
            self._print_caveats(console)
            return
        if self.view is not None and (combination := self.view["combination"]) is not None:
            ranges: Mapping[str, tuple[float, float]] = combination["ranges"]
            targets = self.view["question"]["targets"]
            values = [(target["label"], combination["p"][target["id"]], ranges.get(target["id"])) for target in targets]
            show_answer(console, values, self.view["reasoning"], apart=combination["apart"])
        self._print_caveats(console)
        for answer in self.answers:
            console.rule(f"trial {answer.trial}")
            for event in self.steps.get(answer.trial, ()):
                console.print(Text(describe_event(event)))
            failed = isinstance(answer, Failure)
            console.print(Text(f"failed: {answer.error}", style="red") if failed else Text(answer.rationale))

    @property
    def caveats(self) -> Sequence[str]:
        """What failed in the run or in the answer, what stood in, and what that means for the number."""
        shown: Sequence[str] = () if self.view is None else self.view["caveats"]
        return shown if self.scores is None else self.scores.caveats

    def _print_caveats(self, console: "Console") -> None:
        for caveat in self.caveats:
            console.print(Text(sentence(caveat), style="yellow"))

    def _overview(self, scores: RunScores) -> str:
        row = run_to_dict(self.run, self.money)
        counts = f"{row['forecasts']} forecasts, {row['failed']} failed, {row['fallback']} fallback"
        counts += f", {row['excluded']} excluded" if row["excluded"] else ""
        combined = self._combined(scores)
        lines = [*map(question_lines, scores.answers, combined), "", f"{counts}: {self.money}"]
        if (index := scores.index) is not None:
            baselines = {
                "price": scores.metric("brier_index", MARKET_PRICE),
                "base rate": scores.metric("brier_index", BASE_RATE),
            }
            others = "".join(f", {name} {score.estimate:.1f}" for name, score in baselines.items() if score is not None)
            others += f", combined answers {scores.combined['estimate']:.1f}" if scores.combined else ""
            lines.append(f"Brier index {estimate(index, 1)} on {plural(scores.decided, 'decided question')}{others}")
        lines += [scores.rule] if scores.rule else []
        failures = Counter(answer.error for answer in self.answers if isinstance(answer, Failure))
        lines += [f"{plural(count, 'failure')}: {error}" for error, count in failures.most_common(MOST_REASONS)]
        return "\n".join([*lines, f"every step to one answer: foretell show {self.run.id} ID"])


def question_lines(row: QuestionAnswer, combined: CombinedAnswer | None) -> str:
    """Return a question of a run with its answer, trials, price and outcome as text."""
    shown, several = row.leading, len(row.targets) > 1
    answer = "failed" if combined is None else answer_text(combined.forecast, row.question)
    low, high = (percent(pick(shown.trials)) for pick in (min, max)) if shown.trials else ("", "")
    details = [f"trials {low} to {high}"] if low != high else []
    details += [] if shown.price is None else [f"price {percent(shown.price)}"]
    of = f"{shown.label}: " if several and details else ""
    details += [row.value] if row.value else []
    details += [f"{row.fallback} fallback"] if row.fallback else []
    details += [f"{row.failed} failed"] if row.failed and combined is not None else []
    ended = "" if shown.outcome is None else ", it was " + ("yes" if shown.outcome else "no")
    if several and row.decided:
        ended = f", it was {', '.join(target.label for target in row.targets if target.outcome) or 'none of them'}"
    ended += "" if row.brier is None else f": Brier score {row.brier:.3f}"
    about = f" ({of}{', '.join(details)})" if details else ""
    when = row.question.as_of.at.date().isoformat()
    return f"{row.question.text}\n  {answer}{about}{ended}\n  {row.question.id}, as of {when}"


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(values), ensure_ascii=False, default=str))


def show(request: ShowRequest, settings: Settings | None = None) -> ShowResult:
    """Return the answers of a stored run, or with `question` every step to one answer."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        row = find_run_row(store, request.run)
        id = row.id
        texts = {question.id: question.text for question in store.questions(id)}
        chosen = None if request.question is None else _question_named(request.question, texts)
        answers = [answer for answer in store.costed_answers(id) if chosen in (None, answer.question_id)]
        if chosen is not None and not answers:
            hint = f"foretell show {id} lists its questions"
            raise InputError(f"run {id} has no answer to {chosen!r}", hint=hint)
        steps: dict[int, list[TraceEvent]] = {}
        for _, key, event in store.events(id, chosen) if chosen is not None else ():
            steps.setdefault(key.trial, []).append(event)
        scores = score_run(store, row) if chosen is None else None
        view = (
            None if chosen is None else question_view(store, row, chosen, request.as_of, lambda: score_run(store, row))
        )
        if chosen is not None and view is None:
            raise InputError(
                f"run {id} does not ask {chosen!r} as of {request.as_of}", hint="leave out --as-of for the newest"
            )
        money = money_of(store, settings, [id])[id]
        facts = how_made(store, row, money.billed)
        how = combining_of_row(store, row) if chosen is None else None
    return ShowResult(
        run=row,
        money=money,
        answers=tuple(answers[: request.limit]),
        total=len(answers),
        texts=texts,
        steps={trial: tuple(events[: request.limit]) for trial, events in steps.items()},
        question=chosen,
        scores=scores,
        view=view,
        facts=facts,
        limit=request.limit,
        combining=how,
        trials=tuple(answers) if chosen is None else (),
    )


def _question_named(name: str, texts: Mapping[str, str]) -> str:
    """Find a question by its id, the beginning of its id, or words of its text."""
    if name in texts:
        return name
    fits = [id for id in texts if id.startswith(name)] or [id for id in texts if name.lower() in texts[id].lower()]
    if len(fits) > 1:
        raise InputError(f"{name!r} fits {len(fits)} questions", hint=f"one of {', '.join(fits[:8])}")
    return fits[0] if fits else name
