"""Answer one question with a probability: researched by a model, or from public markets and series without one."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from foretell.data.untrusted import for_terminal, rows_as_text
from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.tree.exports import tree_caveats, tree_failures
from foretell.forecasters.tree.parts import reasoning_lines
from foretell.forecasters.tree.proposition import Tree
from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.number_text import percent
from foretell.operations.requests.asking import AskRequest
from foretell.operations.sharpen import SharpenedQuestion, accepted, sharpen_typed, sharpening_lines
from foretell.operations.typed_question import LEAKY_QUESTIONS, typed_question, typed_run_spec
from foretell.questions.codec import plain_data, to_json
from foretell.questions.errors import NoAnswer
from foretell.questions.forecast import Cost, Failure, Forecast, Numeric
from foretell.questions.question import NONE_OF_THEM, Question, Target, probability_of_none
from foretell.questions.tabular import rows_as_html
from foretell.questions.thresholds import LEVELS
from foretell.report.planning import plan_run, reach_notes
from foretell.report.result import Result
from foretell.report.run_plan import RunPlan
from foretell.report.terminal import show_answer
from foretell.runs.combine import NO_PARTS, CombinedAnswer, combined_answers, combining_by_name, combining_of_run
from foretell.runs.costs import UNPAID_NOTE, answer_money, cost_in_errors, cost_text
from foretell.runs.executor import WatchEvents
from foretell.runs.grown_trees import grown_trees
from foretell.runs.public_answer import CHOOSE_MODEL, Basis, PublicAnswer, answer_without_model
from foretell.runs.public_sources import MarketMatch
from foretell.runs.question_sets import typed_questions
from foretell.runs.runner import PreparedRun, execute_run, prepare_run
from foretell.runs.settings import Settings, clock_of, load_settings
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore
from foretell.runs.stored_runs import check_start
from foretell.scoring.caveats import answer_caveats
from foretell.standing.question_checks import unresolvable_note
from foretell.standing.record import Sharpening
from foretell.standing.settings import watch_changes
from foretell.standing.sharpen import as_asked

if TYPE_CHECKING:
    from rich.console import Console


@frozen
class AskResult(PublicAnswer, Result):
    """A probability with its reasons and its sources."""

    basis: Basis = "model"
    run: str | None = None
    """The run that stores every step; None if no model was asked."""
    trials: tuple[Forecast | Failure, ...] = ()
    cautions: tuple[str, ...] = ()
    """What a model may have known beforehand."""
    paid: Money | None = None
    """What asking cost; None for an answer that was stored before."""
    combined: CombinedAnswer | None = None
    """How the answer follows from the trials, if a model was asked."""
    tree: Tree | None = None
    """The tree behind the answer, if one was grown for all of it."""
    sharpening: Sharpening | None = None
    """What was changed to make the question resolvable, if a model proposed it and it was accepted."""

    @property
    def exit_code(self) -> int:
        """3 if the answer is a fallback, or a part of its tree is."""
        return 3 if self.forecast.fallback or (self.tree is not None and tree_failures(self.tree)) else 0

    @property
    def p(self) -> Mapping[str, float]:
        """Target → probability; "yes" for a yes/no question."""
        return self.forecast.p

    @property
    def none(self) -> float | None:
        """The probability that no outcome comes true, if at most one can; otherwise None."""
        return probability_of_none(self.forecast.p, self.question.exclusivity)

    @property
    def rationale(self) -> str:
        """The reasons."""
        return self.forecast.rationale

    @property
    def usage(self) -> Cost:
        """Dollars, calls and tokens of all trials."""
        return self.forecast.usage

    @property
    def money(self) -> Money:
        """What was billed now, and what cached replies cost originally."""
        return answer_money(self.usage, self.paid)

    @property
    def quantiles(self) -> Mapping[str, float] | None:
        """Quantiles of a number, from q05 to q95; None for other questions."""
        distribution = self.forecast.distribution
        return (
            {name: distribution.quantile(level) for name, level in LEVELS.items()}
            if isinstance(distribution, Numeric)
            else None
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per target, and one for none of them if that can happen; for a number, one per quantile."""
        if self.quantiles is not None:
            return [{"quantile": name, "value": value} for name, value in self.quantiles.items()]
        rows: list[dict[str, Any]] = [
            {"outcome": target.label or target.id, "p": self.forecast.p[target.id]} for target in self.question.targets
        ]
        return rows if self.none is None else [*rows, {"outcome": NONE_OF_THEM, "p": self.none}]

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as it is stored, with its sources and cost."""
        trials = [
            {"trial": trial.trial, "failed": trial.error}
            if isinstance(trial, Failure)
            else {"trial": trial.trial, "p": dict(trial.p)} | ({"fallback": trial.problem} if trial.fallback else {})
            for trial in self.trials
        ]
        return {
            **json.loads(to_json(self.forecast)),
            "question": self.question.text,
            "labels": {target.id: target.label or target.id for target in self.question.targets},
            "quantiles": self.quantiles,
            "exclusivity": self.question.exclusivity,
            "none": self.none,
            "due": self.question.due.isoformat(),
            "run": self.run,
            "trials": trials,
            "similar": [
                {
                    "text": past.text,
                    "url": past.url,
                    "known_on": past.known_on.isoformat(),
                    "outcome": int(past.outcome),
                    "similarity": past.similarity,
                }
                for past in self.similar
            ],
            "sharpening": plain_data(self.sharpening),
            "basis": self.basis,
            "ranges": {target: list(ends) for target, ends in self.ranges.items()},
            **(NO_PARTS if self.combined is None else self.combined.to_dict()),
            "matches": [match.as_row() for match in self.matches],
            "reading": None if self.reading is None else self.reading.as_row(),
            **self.money.to_dict(),
            "warnings": list(self.cautions),
            "notes": list(self.notes),
        }

    def print(self, console: "Console") -> None:
        """Print the probabilities, the reasons, similar past questions, and the cost."""
        from rich.text import Text

        if self.quantiles is not None:
            write = str if self.question.range is None else self.question.range.write
            q = {name: write(float(f"{value:.6g}")) for name, value in self.quantiles.items()}
            console.print(Text.assemble((q["q50"], "bold"), f"  between {q['q05']} and {q['q95']} with 90 %"))
            console.print(Text("\n".join([f"half of it between {q['q25']} and {q['q75']}", *self.reasoning])))
        else:
            rows = zip_longest(self.rows(), self.question.targets)
            values = [(row["outcome"], row["p"], self._range(target)) for row, target in rows]
            show_answer(console, values, self.reasoning, apart=self.combined is not None and self.combined.apart)
        console.print(Text(self._reasons))
        for match in self.matches:
            console.print(Text(match_line(match)))
        for past in self.similar:
            line = past.text.splitlines()[0][:90]
            console.print(Text(f"  {'yes' if past.outcome else 'no':3}  {past.known_on}  {line}"))
        steps = f"{cost_text(self.usage, self.money)}. Every step: foretell show {self.run} {self.question.id}"
        console.print(Text(CHOOSE_MODEL if self.run is None else steps, style="dim"))

    @property
    def reasoning(self) -> list[str]:
        """Lines on the tree beside the direct estimate, what the answer turns on, and what reconciliation changed."""
        both = self.forecast.reconciliation
        return [] if both is None or self.tree is None else reasoning_lines(self.tree, both)

    @property
    def _reasons(self) -> str:
        """The rationale without what the lines on tree and direct estimate have said before."""
        text = self.rationale
        for line in map(str.strip, self.reasoning):
            text = text.replace(f"{line[:1].upper()}{line[1:]}\n", "")
        return text

    def _in_percent(self) -> list[dict[str, Any]]:
        """Return the rows as people read them."""
        return [row | {"p": percent(row["p"])} if "p" in row else row for row in self.rows()]

    def _range(self, target: Target | None) -> tuple[float, float] | None:
        """Return the interval of a target, if it has one."""
        return None if target is None else self.ranges.get(target.id)

    def _repr_html_(self) -> str:
        """Return the outcomes as a table, with the reasons, markets and notes."""
        matches = [match_line(match) for match in self.matches]
        texts = filter(None, [*self.reasoning, self._reasons, *matches, *self.warnings])
        parts = (f'<p style="white-space: pre-wrap">{escape(for_terminal(text))}</p>' for text in texts)
        return rows_as_html(self._in_percent()) + "".join(parts)

    def __str__(self) -> str:
        notes = [f"note: {note}" for note in self.warnings]
        matches = [match_line(match) for match in self.matches]
        return "\n".join([rows_as_text(self._in_percent()), *self.reasoning, "", self._reasons, *matches, *notes])


def match_line(match: MarketMatch) -> str:
    """Return a market as text: its price, and whether it asks the same question."""
    price = "    –" if match.price is None else f"{percent(match.price):>5}"
    what = "the same" if match.same else f"only related: {'; '.join(match.differs) or 'not alike enough'}"
    closes = f", until {match.closes}" if match.closes else ""
    text = " ".join(match.text.split())[:110]
    first = f"  {price}  {match.platform}{closes}, similarity {match.similarity:.2f}, {what}"
    return "\n        ".join((first, text, match.url))


def prepare_ask(request: AskRequest, settings: Settings, sharpening: Sharpening | None = None) -> PreparedRun:
    """Return the run that answers a question, checked before anything is stored. A plan checks no keys."""
    now = clock_of(settings)()
    spec = typed_run_spec(request, {"combine": "default"}, now)
    combining_by_name(spec.combine)
    check_start(spec, settings, plan=request.plan)
    question = typed_question(request, now)
    if sharpening is not None:
        background = "\n\n".join(filter(None, (question.background, as_asked(sharpening))))
        question = replace(question, background=background)
    return prepare_run(spec, typed_questions([question]))


async def answer_question(
    request: AskRequest,
    settings: Settings | None = None,
    *,
    watch: WatchEvents | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> AskResult | RunPlan | SharpenedQuestion:
    """Return a probability with reasons, researched by `model`, or from public markets and series without a model.

    Without a model it costs nothing. Keys come from the environment. Asking the same question as of the same date again
    takes every reply from the journal and costs nothing.
    """
    settings = settings or load_settings()
    if not names_model(request):
        if request.plan:
            return RunPlan(run="", questions=1, trials=1, open=1, models={}, dollars=0.0, basis="no model is named")
        answer = await answer_without_model(
            typed_question(request, clock_of(settings)()), settings, past=bool(request.as_of)
        )
        answer = replace(answer, notes=(*answer.notes, *unresolvable_note(answer.question)))
        return AskResult(**vars(answer))
    if request.sharpen is not None and not request.plan:
        return await _sharpened_answer(request, settings, watch, tell)
    return await _researched(request, settings, watch, tell)


async def _sharpened_answer(
    request: AskRequest, settings: Settings, watch: WatchEvents | None, tell: Callable[[str], None]
) -> AskResult | SharpenedQuestion | RunPlan:
    """Let the model propose a wording, and ask it if the user accepts it."""
    prepare_ask(request, settings)  # What cannot be asked is refused before anything is paid.
    with closing(Journal(settings.journal)) as journal:
        proposal, within = await sharpen_typed(request, settings, journal)
        if request.sharpen == "propose":
            return proposal
        for line in ("asked with this wording:", *sharpening_lines(proposal.sharpening)):
            tell(line)
        answer = await _researched(accepted(request, proposal.sharpening), within, watch, tell, proposal.sharpening)
    if not isinstance(answer, AskResult) or answer.paid is None:
        return answer
    return replace(answer, paid=answer.paid + proposal.paid)


async def _researched(
    request: AskRequest,
    settings: Settings,
    watch: WatchEvents | None,
    tell: Callable[[str], None],
    sharpening: Sharpening | None = None,
) -> AskResult | RunPlan:
    prepared = prepare_ask(request, settings, sharpening)
    if request.plan:
        return plan_run(prepared, settings)
    with closing(RunStore(settings.store)) as store:
        reach = reach_notes(prepared, store)
    for notice in (*prepared.notices, *reach):
        tell(notice)
    done = await execute_run(prepared, settings, on_event=watch)
    with closing(RunStore(settings.store)) as store, cost_in_errors(done.money):
        answer = stored_answer(store, prepared.spec, prepared.questions[0])
    return replace(answer, paid=done.money, notes=(*answer.notes, *done.unread), sharpening=sharpening)


def names_model(request: AskRequest) -> bool:
    """Whether a model is to research the question."""
    changes = set(watch_changes(request.set)[1]) - {LEAKY_QUESTIONS}
    return bool(changes or (not request.no_model and (request.model is not None or request.config)))


def stored_answer(store: RunStore, spec: RunSpec, question: Question) -> AskResult:
    """Return the answer of a run to a question, with its trials combined."""
    # The same question asked earlier today belongs to the same run but has its own answer.
    at = question.as_of_in(spec.mode).at
    answers = [
        answer
        for answer in store.costed_answers(spec.id)
        if answer.question_id == question.id and answer.as_of.at == at
    ]
    how = combining_of_run(store, spec)
    # A fallback answer that is marked as one is better than none.
    combined = combined_answers(answers, [question], how) or combined_answers(
        answers, [question], replace(how, fallback=True)
    )
    forecasts = [answer.forecast for answer in combined]
    if not forecasts:
        raise NoAnswer("; ".join(answer_caveats(answers, None)) or "no trial gave an answer: nothing was run")
    due = question.due.isoformat()
    grown = grown_trees((key.trial, event) for _, key, event in store.events(spec.id, question.id) if key.due == due)
    tree = grown[0].tree if len(grown) == 1 else None
    of_trees = [text for each in grown for text in (*tree_failures(each.tree), *tree_caveats(each.tree))]
    unended = max(spec.trials - sum(answer.forecaster != PANEL for answer in answers), 0)
    notes = [*answer_caveats(answers, forecasts[0], of_trees, unended=unended)]
    if not forecasts[0].usage.calls:
        notes.append(UNPAID_NOTE)
    if spec.questions.typed:
        notes += unresolvable_note(question)
    return AskResult(
        forecast=forecasts[0],
        question=question,
        run=spec.id,
        trials=tuple(answers),
        ranges=combined[0].ranges,
        combined=combined[0],
        tree=tree,
        cautions=prepare_run(spec, typed_questions([question])).warnings,
        notes=tuple(notes),
    )
